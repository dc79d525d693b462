"""What the model of one file asks of the project, and asking again without the project.

The model speaks of functions and calls by lines; the project and what is remembered of its answers know them by number.
As long as no file's facts change but for positions, remembered answers hold, so that a file can be looked at again
without linking the project anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from awp_lint.detector.finding import Frame
from awp_lint.detector.semantics.facts import GUARD_REFERENCE, BranchFact, FileFacts, FunctionFact
from awp_lint.detector.semantics.frequency import call_line
from awp_lint.detector.semantics.linked import Entry, Place
from awp_lint.detector.semantics.outside import Outside
from awp_lint.detector.semantics.values import Value
from awp_lint.detector.semantics.view import Callers, Frequency

Question = tuple[Any, ...]  # the question's name and its arguments
Answers = dict[Question, Any]


class Entered(NamedTuple):
    """How often a function is entered. ``cold``: set-up code, in which loops do not count; ``heats``: what it calls may
    get hot by it."""

    frequency: Frequency
    cold: bool
    heats: bool


class ProjectView(Outside, Protocol):
    """What the model of one file asks."""

    def entered(self, qualname: str, line: int) -> Entered:
        """How often the file's function is entered whose first line (decorators included) this is."""

    def parts(self, qualname: str, line: int) -> tuple[tuple[BranchFact, Frequency | None], ...]:
        """The branches of the file's function that not every call makes run, with how often it is entered by those
        that do; None where no call does."""

    def defaults(self, field: str) -> tuple[str, ...]:
        """The texts of a field's defaults in the configuration classes that the file imports or defines."""

    def callers(self, qualname: str, line: int) -> Callers:
        """Who calls the file's function whose first line (decorators included) this is."""

    def switches_off(self, function: str) -> bool:
        """Whether the function of this dotted name switches gradients off for what it does, or for some of it."""

    def speaks_of(self, word: str) -> bool:
        """Whether a function, an import, a call or an argument of one anywhere in the project has the word in its
        name."""

    def says(self, text: str) -> bool:
        """Whether a default, an argument of a call or a field of a configuration of the project is this text."""

    def is_spare(self, cls: str) -> bool:
        """Whether the whole package is there to see, a class of the file, by its plain name, is not among what the file
        gives others, and no other file names it."""

    def reached(self, qualname: str, line: int, call: tuple[int, int]) -> tuple[str, ...]:
        """Dotted names of the project's functions that the call at (line, UTF-8 column) in that function may run."""


class Unanswered(BaseException):
    """A question that was not asked before. No fault, so that nothing which catches faults of rules catches it."""


class Asking:
    """Asks for one file. ``ask`` answers a question; ``facts_of`` gives the facts of any file by its path,
    ``frames`` keeps what calls look like for all files that are asked for."""

    def __init__(
        self,
        path: str,
        facts: FileFacts,
        ask: Callable[[Question], Any],
        facts_of: Callable[[str], FileFacts],
        frames: dict[Place, Frame] | None = None,
    ) -> None:
        self._ask = ask
        self._facts = facts
        self._facts_of = facts_of
        self._frames: dict[Place, Frame] = {} if frames is None else frames
        self._numbers = {
            (function.qualname, function.line): number
            for number, function in reversed(list(enumerate(facts.functions)))
        }
        self._calls: dict[int, dict[tuple[int, int], int]] = {}
        self._entered: dict[int, Entered] = {}

    def canonical(self, dotted: str) -> str:
        return self._ask(("canonical", dotted))  # type: ignore[no-any-return]

    def is_function(self, dotted: str) -> bool:
        return self._ask(("is_function", dotted))  # type: ignore[no-any-return]

    def is_class(self, dotted: str) -> bool:
        return self._ask(("is_class", dotted))  # type: ignore[no-any-return]

    def bases(self, cls: str) -> frozenset[str]:
        return self._ask(("bases", cls))  # type: ignore[no-any-return]

    def method(self, cls: str, name: str) -> str | None:
        return self._ask(("method", cls, name))  # type: ignore[no-any-return]

    def returns(self, function: str) -> Value | None:
        return self._ask(("returns", function))  # type: ignore[no-any-return]

    def attribute(self, cls: str, name: str) -> Value | None:
        return self._ask(("attribute", cls, name))  # type: ignore[no-any-return]

    def parameter(self, function: str, name: str) -> Value | None:
        return self._ask(("parameter", function, name))  # type: ignore[no-any-return]

    def global_value(self, dotted: str) -> Value | None:
        return self._ask(("global_value", dotted))  # type: ignore[no-any-return]

    def switches_off(self, function: str) -> bool:
        return self._ask(("switches_off", function))  # type: ignore[no-any-return]

    def speaks_of(self, word: str) -> bool:
        return self._ask(("speaks_of", word))  # type: ignore[no-any-return]

    def says(self, text: str) -> bool:
        return self._ask(("says", text))  # type: ignore[no-any-return]

    def is_spare(self, cls: str) -> bool:
        return self._ask(("is_spare", cls))  # type: ignore[no-any-return]

    def entered(self, qualname: str, line: int) -> Entered:
        number = self._numbers.get((qualname, line))
        if number is None:
            return Entered(Frequency(), False, True)
        known = self._entered.get(number)
        if known is None:
            entry = self._entry(number)
            known = self._entered[number] = Entered(self._explained(entry), entry.cold, entry.heats)
        return known

    def _explained(self, entry: Entry) -> Frequency:
        chain = [Frame(library, 0, function) for library, function in entry.origin]
        chain += map(self._frame, entry.places)
        return Frequency(entry.path, entry.certainty, tuple(chain))

    def parts(self, qualname: str, line: int) -> tuple[tuple[BranchFact, Frequency | None], ...]:
        number = self._numbers.get((qualname, line))
        if number is None or not self._facts.functions[number].branches:
            return ()
        found = {
            (parameter, state): None if entry is None else self._explained(entry)
            for parameter, state, entry in self._ask(("parts", number))
        }
        branches = self._facts.functions[number].branches if found else ()
        return tuple((branch, found[branch[:2]]) for branch in branches if branch[:2] in found)

    def _entry(self, number: int) -> Entry:
        entry: Entry = self._ask(("entry", number))
        return entry

    def heat(self, number: int) -> Entered:
        """How often the file's function of this number is entered, without the calls that lead there."""
        entry = self._entry(number)
        return Entered(Frequency(entry.path, entry.certainty), entry.cold, entry.heats)

    def _frame(self, place: Place) -> Frame:
        frame = self._frames.get(place)
        if frame is None:
            function = self._named(place)
            frame = self._frames[place] = Frame(place.path, call_line(function, place.call), function.qualname)
        return frame

    def _named(self, place: Place) -> FunctionFact:
        named = (f for f in self._facts_of(place.path).functions if f.qualname == place.function)
        return next(itertools.islice(named, place.which, None))

    def defaults(self, field: str) -> tuple[str, ...]:
        return self._ask(("defaults", field))  # type: ignore[no-any-return]

    def callers(self, qualname: str, line: int) -> Callers:
        number = self._numbers.get((qualname, line))
        return Callers() if number is None else Callers(*self._ask(("callers", number)))

    def reached(self, qualname: str, line: int, call: tuple[int, int]) -> tuple[str, ...]:
        number = self._numbers.get((qualname, line))
        if number is None:
            return ()
        calls = self._calls.get(number)
        if calls is None:
            calls = self._calls[number] = {
                (fact.line, fact.column): index
                for index, fact in enumerate(self._facts.functions[number].calls)
                if not fact.guard & GUARD_REFERENCE
            }
        index = calls.get(call)
        return () if index is None else self._ask(("reached", number, index))


def from_project(project: Any, path: str, answers: Answers | None = None) -> Callable[[Question], Any]:
    """A way to ask a linked project for the file at ``path``; the answers are noted in ``answers``."""
    known: Answers = {} if answers is None else answers

    def ask(question: Question) -> Any:
        try:
            return known[question]
        except KeyError:
            name, *arguments = question
            if name in ("entry", "parts", "reached", "callers", "defaults", "is_spare"):
                arguments = [path, *arguments]
            answer = known[question] = getattr(project, name)(*arguments)
            return answer

    return ask


def from_memory(answers: Mapping[Question, Any]) -> Callable[[Question], Any]:
    """A way to ask remembered answers. Raises :class:`Unanswered`."""

    def ask(question: Question) -> Any:
        try:
            return answers[question]
        except KeyError:
            raise Unanswered(question) from None

    return ask
