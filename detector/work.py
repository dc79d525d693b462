"""What is done for one file, in whichever process: its facts, and the rules on it."""

from __future__ import annotations

import ast
import bisect
import contextlib
import fnmatch
import functools
import gc
import hashlib
import multiprocessing
import re
import symtable
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Confidence, Event, Finding, Frame, Mark, MarkKind, Problem
from awp_lint.detector.project.notebook import Notebook, read_notebook
from awp_lint.detector.project.reading import ReadFile, read_bytes
from awp_lint.detector.project.source import Source, SourceError
from awp_lint.detector.project.stored import dumps, loads
from awp_lint.detector.scan import Unit
from awp_lint.detector.semantics.asking import Answers, Asking, Question, from_project
from awp_lint.detector.semantics.copies import Copies
from awp_lint.detector.semantics.extract import extract
from awp_lint.detector.semantics.facts import FileFacts, FunctionFact, packed, shape, unpacked
from awp_lint.detector.semantics.linked import Linked, Place
from awp_lint.detector.semantics.loops import LEVELS
from awp_lint.detector.semantics.masking import lines_with, source_lines, without_bodies
from awp_lint.detector.semantics.model import FileModel
from awp_lint.detector.semantics.names import FileNames
from awp_lint.detector.semantics.regions import is_template
from awp_lint.detector.semantics.summaries import FileValues, summarise_file
from awp_lint.detector.semantics.view import Level, LoopKind

if TYPE_CHECKING:
    from awp_lint.rules.base import Rule
    from awp_lint.rules.engine import Vocabulary

MAX_NODES = 1_500_000  # of one file's expressions: what is larger was generated


class Failure(NamedTuple):
    """Why a file gives no facts."""

    message: str
    line: int | None = None


class Brief(NamedTuple):
    """What is kept of a file besides its facts: why there are none, or digests that tell when they matter to others."""

    failure: Failure | None
    shape: bytes = b""  # of the facts, positions left out
    values: bytes = b""  # of the values


#: What a file says, as it is or pickled.
Facts: TypeAlias = "bytes | tuple[FileFacts, FileValues]"


class Made(NamedTuple):
    """The brief of a file and its facts, where it has any."""

    brief: Brief
    facts: Facts | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the rules found in one file, in the ``world`` that all files together are; ``leans`` on the positions in
    other files, by path and digest of the content."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    unused: tuple[Problem, ...]
    units: tuple[Unit, ...]
    world: bytes
    leans: tuple[tuple[str, bytes], ...] = ()


# parsing -------------------------------------------------------------------------------------------------------------


def read(path: str, real: str) -> tuple[str, Notebook | None]:
    """The text of a file, and the cells for a notebook. Raises :class:`SourceError` with one clear line."""
    try:
        raw = read_bytes(real)
    except OSError as error:
        raise SourceError(f"cannot read: {error.strerror or error}") from None
    if real.endswith(".ipynb"):
        notebook = read_notebook(raw)
        return notebook.text, notebook
    return Source.decode(path, raw).text, None


def parse(text: str, notebook: Notebook | None) -> ast.Module:
    """The tree of a text. Raises :class:`SourceError` with one clear line."""
    flags = ast.PyCF_ONLY_AST | (ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if notebook is not None else 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = compile(text, "<source>", "exec", flags, dont_inherit=True)
        except SyntaxError as error:
            raise SourceError(f"syntax error: {error.msg}", error.lineno) from None
        except (RecursionError, MemoryError):
            raise SourceError("nested too deeply to be parsed") from None
        except ValueError as error:
            raise SourceError(str(error)) from None
    assert isinstance(tree, ast.Module)
    return tree


def check(text: str, notebook: Notebook | None) -> None:
    """Whether a text can be parsed, at half the cost of its tree. Raises :class:`SourceError` as :func:`parse` does."""
    if notebook is None:
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            symtable.symtable(text, "<source>", "exec")
            return
    parse(text, notebook)  # what it says is wrong; the table of names has faults of its own


def collect_by_hand() -> None:
    """Collecting garbage while trees are built costs a fifth of the parse: it is done between files instead.

    What is there already stays: looking through it would copy all that forked processes share.
    """
    gc.freeze()
    gc.disable()


#: Bytes of sources between two looks for garbage, which cost a second and find ten megabytes.
_MAX_UNCOLLECTED = 200_000_000
_uncollected = [0]


def _collect(size: int) -> None:
    """Free what cycles of finished files there are (models release theirs, faults may leave some) now and then.

    ``size`` is that of the file just done, in bytes.
    """
    _uncollected[0] += size
    if _uncollected[0] > _MAX_UNCOLLECTED:
        _uncollected[0] = 0
        gc.collect()


# facts ---------------------------------------------------------------------------------------------------------------

_settings: list[Settings] = []
_copies: list[Copies] = []


def prepare_facts(settings: Settings) -> None:
    """Once a process, before :func:`facts_of`."""
    _settings[:] = [settings]
    _copies[:] = [Copies()]
    collect_by_hand()


def facts_of(task: tuple[ReadFile, bool]) -> Made:
    """The facts of one file; of one that has nothing to do with model code (False) only whether it can be parsed, of a
    template not even that: what is generated from it is parsed."""
    file, wanted = task
    if not wanted and is_template(file.found.path):
        return Made(Brief(None), None)
    try:
        text, notebook = read(file.found.path, file.found.real)
        if not wanted:
            check(text, notebook)
            return Made(Brief(None), None)
        copied = _copies[0].beside(text, functools.partial(parse, notebook=notebook))
        tree = copied.tree()
        facts = extract(tree, text, copied)
        if facts.nodes > MAX_NODES:
            failure = Failure(f"more than {MAX_NODES:,} expressions, as generated code has: skipped")
            return Made(Brief(failure), None)
        names = FileNames(facts, file.module, file.is_package)
        values = summarise_file(tree, names, target=_settings[0].target, copied=copied)
    except SourceError as error:
        return Made(Brief(Failure(str(error), error.line)), None)
    except (RecursionError, MemoryError):
        return Made(Brief(Failure("nested too deeply to be analysed")), None)
    except Exception as error:  # as for rules: a fault of ours costs one file and not the run
        return Made(Brief(Failure(told_fault(error))), None)
    brief = _digests(facts, values) if _settings[0].cache else Brief(None)
    return Made(brief, dumps((packed(facts), values)) if _in_bytes(_settings[0]) else (facts, values))


def told_fault(error: Exception) -> str:
    """What is said of a file in whose analysis we failed."""
    told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return f"its analysis failed ({told}): please report it"


def _in_bytes(settings: Settings) -> bool:
    """Whether results are pickled where they are made: for the cache, or for another process."""
    return settings.cache or multiprocessing.parent_process() is not None


def _digests(facts: FileFacts, values: FileValues) -> Brief:
    """What tells later scans whether a file has changed for others."""
    digest = hashlib.blake2b(values.packed, digest_size=16)
    digest.update(" ".join(sorted(values.called)).encode("utf-8", "surrogatepass"))
    return Brief(None, shape(facts), digest.digest())


def load_facts(data: Facts) -> tuple[FileFacts, FileValues]:
    """The facts of a file from the form that they are in."""
    if not isinstance(data, bytes):
        return data
    facts, values = loads(data)
    assert isinstance(facts, tuple) and isinstance(values, FileValues)
    return unpacked(facts), values


# rules ---------------------------------------------------------------------------------------------------------------


class Chosen:
    """The rules of a run, and the words by which a file or a function can have to do with them."""

    def __init__(self, settings: Settings) -> None:
        from awp_lint.rules.registry import screening_words, select

        self.rules = select(settings.select, settings.ignore, settings.extend_select)
        self.words = tuple(sorted(screening_words(self.rules)))
        telling: dict[bytes, set[re.Pattern[str] | None]] = {}  # by the words of rules that find something anywhere
        for rule in self.rules:
            for word in rule.words if rule.anywhere else ():
                telling.setdefault(word, set()).add(rule.telling)
        self.anywhere = {
            word: () if None in found else tuple(p for p in found if p is not None) for word, found in telling.items()
        }
        self.off = settings.per_file_ignores

    def on(self, path: str) -> Sequence[Rule]:
        """The rules less those that ``per-file-ignores`` takes away."""
        off = [
            prefix.upper()
            for pattern, prefixes in self.off
            if fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(path.rpartition("/")[2], pattern)
            for prefix in prefixes
        ]
        return [rule for rule in self.rules if not rule.id.startswith(tuple(off))] if off else self.rules


@dataclass(slots=True)
class World:
    """What the rules stage works with. ``facts_of`` gives a file's facts by its path, ``digests`` the content's."""

    linked: Linked | None
    facts_of: Callable[[str], FileFacts]
    digests: dict[str, bytes]
    chosen: Chosen
    settings: Settings
    world: bytes
    frames: dict[Place, Frame] = field(default_factory=dict)  # of calls in any file, as findings show them


_world: list[World] = []


def prepare_rules(world: World) -> None:
    """Once a process, before :func:`outcome_of`."""
    _world[:] = [world]
    _copies.clear()
    collect_by_hand()


class Earlier(NamedTuple):
    """An outcome of a file with the same content, and the answers it rests on, pickled."""

    outcome: bytes
    answers: bytes


def outcome_of(task: tuple[ReadFile, Earlier | None]) -> tuple[Outcome | bytes, bytes | None]:
    """Outcome and answers of one file; both are pickled where they are remembered, else there are no answers."""
    file, earlier = task
    world = _world[0]
    assert world.linked is not None
    if earlier is not None:
        same = _still_holds(file, earlier, world)
        if same is not None:
            return same
    answers: Answers = {}
    outcome = look_at(file, from_project(world.linked, file.found.path, answers), world)
    answers["world",] = world.world
    _collect(file.size)
    return dumps(outcome) if _in_bytes(world.settings) else outcome, dumps(answers) if world.settings.cache else None


def _still_holds(file: ReadFile, earlier: Earlier, world: World) -> tuple[bytes, bytes] | None:
    """The earlier outcome and answers, moved into this world, if the answers are the same and nothing has moved."""
    outcome = loads(earlier.outcome)
    answers: dict[Question, Any] = loads(earlier.answers)
    assert isinstance(outcome, Outcome)
    if not leans_stand(outcome, world.digests):
        return None
    answers.pop(("world",), None)
    ask = from_project(world.linked, file.found.path)
    if any(ask(question) != answer for question, answer in answers.items()):
        return None
    answers["world",] = world.world
    return dumps(replace(outcome, world=world.world)), dumps(answers)


def leans_stand(outcome: Outcome, digests: dict[str, bytes]) -> bool:
    """Whether the files whose positions an outcome mentions are unchanged."""
    return all(digests.get(path) == digest for path, digest in outcome.leans)


def look_at(file: ReadFile, ask: Callable[[Question], Any], world: World) -> Outcome:
    """Run the rules on one file."""
    from awp_lint.rules.engine import Vocabulary, run_rules

    path = file.found.path
    facts = world.facts_of(path)
    project = Asking(path, facts, ask, world.facts_of, world.frames)
    units: tuple[Unit, ...] = ()
    try:
        units = () if file.found.real.endswith(".ipynb") else tuple(_units(file, facts, project))
        text, notebook = read(path, file.found.real)
        problems = () if notebook is None else _cell_problems(path, notebook)
        vocabulary = Vocabulary(text)
        searched = _to_search(text, vocabulary, facts, project, world)
        if searched is None and "awp:" not in text:
            return Outcome((), problems, (), units, world.world)
        view = FileModel(
            text,
            parse(text if searched is None else searched, notebook),
            path=path,
            module=file.module,
            is_package=file.is_package,
            settings=world.settings,
            facts=facts,
            project=project,
        )
        run = run_rules(view, world.chosen.on(path), world.settings.confidence, vocabulary)
        findings = (*run.findings, *run.suppressed)
        if notebook is None:
            findings = tuple(_with_diffs(findings, view))
        view.release()
    except (SourceError, RecursionError, MemoryError) as error:
        message = str(error) if isinstance(error, SourceError) else "nested too deeply to be analysed"
        return Outcome((), (Problem(path, message, fatal=file.found.named),), (), units, world.world)
    except Exception as error:  # a fault of ours costs one file
        return Outcome((), (Problem(path, told_fault(error), fatal=file.found.named),), (), units, world.world)
    if notebook is not None:
        findings = tuple(_in_cell(finding, notebook) for finding in findings)
    mentioned = {frame.path for finding in findings for frame in finding.chain}
    mentioned.update(related.path for finding in findings for related in finding.related)
    leans = tuple((name, world.digests[name]) for name in sorted(mentioned - {path}) if name in world.digests)
    return Outcome(findings, (*run.problems, *problems), run.unused, units, world.world, leans)


def _cell_problems(path: str, notebook: Notebook) -> tuple[Problem, ...]:
    return tuple(Problem(path, f"cell {at.cell}: {text}", at.line) for at, text in notebook.errors)


def _to_search(text: str, vocabulary: Vocabulary, facts: FileFacts, project: Asking, world: World) -> str | None:
    """The text less the functions in which no rule can find anything at the wanted confidence; None if that is all."""
    low = world.settings.confidence is Confidence.LOW or "awp:" in text  # a comment may silence what is hidden

    def runs(number: int, function: FunctionFact) -> bool:
        frequency, cold, _ = project.heat(number)
        if cold or not frequency.known:
            return low and not cold
        # a script's own loops count too
        return bool(frequency.path) or any(call.loops for call in function.calls)

    running = {number for number, function in enumerate(facts.functions) if runs(number, function)}
    if running or facts.loops:
        if not vocabulary.holds(*world.chosen.words):
            return None
        anywhere = [word for word in world.chosen.anywhere if vocabulary.holds(word)]
    else:
        anywhere = [word for word in world.chosen.anywhere if vocabulary.has(word)]
        if not anywhere:
            return None
    lines = source_lines(text) if anywhere else []
    places = [(lines_with(word.decode(), text), world.chosen.anywhere[word]) for word in anywhere]

    def needed(number: int, function: FunctionFact) -> bool:
        if number in running:
            return True
        first, last = function.line, function.body[1]
        body: str | None = None
        for held, found in places:
            at = bisect.bisect_left(held, first)
            if at < len(held) and held[at] <= last:
                body = "\n".join(lines[first - 1 : last]) if found and body is None else body
                if not found or any(p.search(body or "") for p in found):
                    return True
        return False

    return without_bodies(text, facts, needed)


def _in_cell(finding: Finding, notebook: Notebook) -> Finding:
    """The finding with cell and line; edits of notebooks would have to be written as JSON, so there are none."""
    first = notebook.lines[finding.span.line - 1]
    last = notebook.lines[min(finding.span.end_line, len(notebook.lines)) - 1]
    fix = None if finding.fix is None else replace(finding.fix, edits=(), imports=())
    span = replace(finding.span, line=first.line, end_line=last.line if last.cell == first.cell else first.line)
    return replace(finding, span=span, cell=first.cell, mark=None, fix=fix)


def _with_diffs(findings: Iterable[Finding], view: FileModel) -> Iterator[Finding]:
    """The findings with the diffs of their fixes, for every scan that the cache answers. One that cannot be made is
    left to the report, which says so."""
    source: Source | None = None
    for finding in findings:
        if finding.fix is not None and finding.fix.edits and not finding.fix.others:
            from awp_lint.patches.plan import with_diff

            source = source or Source(view.path, view.text)
            with contextlib.suppress(ValueError, SyntaxError):
                finding = with_diff(finding, source, tree=view.tree)
        yield finding


def _units(file: ReadFile, facts: FileFacts, project: Asking) -> Iterable[Unit]:
    """Loops that count steps, tokens or requests, in code that is neither test nor training."""
    for number, function in enumerate(facts.functions):
        if not function.loops:
            continue
        entered = project.heat(number)
        if entered.cold or not entered.heats:
            continue
        served = Level.REQUEST in entered.frequency.path
        for loop in function.loops:
            level = LEVELS[LoopKind(loop.kind)]
            if level is Level.REQUEST and served:
                continue  # what a request goes over is a part of it
            mark = Mark(
                MarkKind.LOOP, loop.line, loop.column, loop.end_line, loop.end_column, function.qualname,
                function.line, Event.NONE,
            )  # fmt: skip
            yield Unit(file.found.real, file.module, mark, "request" if level is Level.REQUEST else "step")
