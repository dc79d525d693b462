"""Changes of a file after which all that the project answered before still holds.

Linking a large project takes longer than looking at one changed file. What moves lines or changes expressions leaves
the facts as they were; this module knows of one more change that others cannot notice: functions that are added or
taken away, that call nothing, that nothing mentions and that nobody enters. Everything else is linked anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from awp_lint.detector.semantics import entries
from awp_lint.detector.semantics.asking import Answers
from awp_lint.detector.semantics.facts import FileFacts, FunctionFact, Ref, function_names
from awp_lint.detector.semantics.linked import Entry
from awp_lint.detector.semantics.regions import file_regions
from awp_lint.detector.semantics.summaries import FileValues
from awp_lint.detector.semantics.view import Region

Name = tuple[str, int]  # of a function: qualified name, and which one of those that share it


class State(NamedTuple):
    """One state of a file: what it says about itself."""

    facts: FileFacts
    values: FileValues


class Renumbering(NamedTuple):
    """The new numbers of a file's functions by their old ones, and the numbers of those that are new."""

    numbers: Mapping[int, int]
    added: frozenset[int]

    def moved(self, answers: Answers) -> Answers:
        """What the project answered this file, by the new numbers."""
        found: Answers = {}
        for question, answer in answers.items():
            if question[0] in ("entry", "reached"):
                if question[1] not in self.numbers:
                    continue
                question = (question[0], self.numbers[question[1]], *question[2:])
            found[question] = answer
        found.update({("entry", number): Entry() for number in self.added})
        return found


class Unnoticed(NamedTuple):
    """A change that nobody notices, if no file mentions the ``names`` more often than this says."""

    names: Mapping[str, int]
    renumbering: Renumbering


def unnoticed(path: str, before: State, after: State) -> Unnoticed | None:
    """How a file changed, if only functions came or went that are nobody's business; None for any other change."""
    if file_regions(path) is not Region.NONE:
        return None
    old, new = function_names(before.facts), function_names(after.facts)
    came, went = set(new) - set(old), set(old) - set(new)
    if not all(_alone(after.facts.functions[new.index(name)]) for name in came):
        return None
    if not all(_alone(before.facts.functions[old.index(name)]) for name in went):
        return None
    if _seen(before.facts, old, went) != _seen(after.facts, new, came):
        return None
    if _said(before.values, went) != _said(after.values, came):
        return None
    places = {name: number for number, name in enumerate(new)}
    numbers = {number: places[name] for number, name in enumerate(old) if name in places}
    added = frozenset(places[name] for name in came)
    names = {**{name: 0 for name, _ in went}, **{name: 1 for name, _ in came}}
    return Unnoticed(names, Renumbering(numbers, added))


def _alone(function: FunctionFact) -> bool:
    """Whether a function is one of the module, calls nothing, and is not called by convention either."""
    return (
        function.outer == 0
        and function.cls < 0
        and function.kind == "function"
        and not (function.regions or function.decorators or function.routes or function.awp)
        and not (function.calls or function.properties or function.writes)
        and entries.contract(function, (), ()) is None
        and entries.convention(function, (), False, True) is None
    )


def _seen(facts: FileFacts, names: list[Name], left_out: set[Name]) -> tuple[object, ...]:
    """The facts without positions and with names for numbers, some functions left out. Their order counts: of calls
    that lead to a function equally often the first is told."""
    plain = {name for name, _ in left_out}
    functions = [
        (name, _function(function, names))
        for name, function in zip(names, facts.functions, strict=True)
        if name not in left_out
    ]
    classes = [
        (
            c.qualname, names[c.outer], _refs(c.bases, names), _refs(c.decorators, names),
            [(method, names[number]) for method, number in c.methods],
            [(attribute, names[number], _ref(ref, names)) for attribute, number, ref in c.attributes],
        )
        for c in facts.classes
    ]  # fmt: skip
    imports = [fact._replace(scope=0) for fact in facts.imports]
    scopes = [names[fact.scope] for fact in facts.imports]
    variables = [(name, _ref(ref, names)) for name, ref in facts.variables]
    bound = {name for name in facts.names if name not in plain}
    return functions, classes, imports, scopes, bound, variables, facts.exports, facts.strings


def _function(function: FunctionFact, names: list[Name]) -> tuple[object, ...]:
    return (
        function.cls, names[function.outer] if function.outer >= 0 else None, function.kind, function.binding,
        function.regions, _refs(function.decorators, names), function.routes, function.parameters,
        [(name, _ref(ref, names)) for name, ref in function.annotations], _refs(function.returns, names),
        [(_ref(call.callee, names), call.loops, call.guard) for call in function.calls],
        [(name, loops, guard) for name, loops, _, guard in function.properties], function.writes, function.awp,
    )  # fmt: skip


def _refs(refs: tuple[Ref, ...], names: list[Name]) -> list[object]:
    return [_ref(ref, names) for ref in refs]


def _ref(ref: object, names: list[Name]) -> object:
    """A reference with the names of functions for their numbers."""
    if not isinstance(ref, tuple):
        return ref
    if ref[0] in ("p", "f"):
        return (ref[0], names[ref[1]], *ref[2:])
    return tuple(_ref(part, names) for part in ref)


def _said(values: FileValues, left_out: set[Name]) -> tuple[Any, ...]:
    body = values.unpack()
    plain = {name for name, _ in left_out}
    functions = [(name, function) for name, function in body.functions.items() if name not in plain]
    return functions, body.classes, body.variables, body.calls
