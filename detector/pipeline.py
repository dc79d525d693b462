"""The stages of a scan that is not answered from the cache as a whole: facts, linking, rules.

Facts of a file are cached by its content; its findings by its content and the answers that the rest of the project gave
while they were made.
"""

from __future__ import annotations

import ast
import fnmatch
import gc
import pickle
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Confidence, Event, Finding, Mark, MarkKind, Problem
from awp_lint.detector.project.cache import Cache, key
from awp_lint.detector.project.notebook import Notebook, read_notebook
from awp_lint.detector.project.reading import ReadFile, read_bytes, screen
from awp_lint.detector.project.screening import in_scope
from awp_lint.detector.project.source import Source, SourceError
from awp_lint.detector.project.workers import each
from awp_lint.detector.scan import Progress, ScanResult, Unit
from awp_lint.detector.semantics.extract import extract
from awp_lint.detector.semantics.facts import FileFacts, FunctionFact
from awp_lint.detector.semantics.index import IndexedFile
from awp_lint.detector.semantics.linked import Answers, Linked, Question, Recorder
from awp_lint.detector.semantics.loops import LEVELS
from awp_lint.detector.semantics.masking import without_bodies
from awp_lint.detector.semantics.model import FileModel
from awp_lint.detector.semantics.names import FileNames
from awp_lint.detector.semantics.summaries import FileValues, summarise_file
from awp_lint.detector.semantics.view import Level, LoopKind

if TYPE_CHECKING:
    from awp_lint.rules.base import Rule

MAX_NODES = 1_500_000  # of one file's expressions: what is larger was generated


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a file gives no facts."""

    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the rules found in one file. ``asked`` are the questions to the project on whose ``answers`` it depends."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    unused: tuple[Problem, ...]
    asked: tuple[Question, ...]
    answers: bytes


def analyse(files: Sequence[ReadFile], settings: Settings, cache: Cache, progress: Progress | None) -> ScanResult:
    """Facts of all files, linked; rules on the candidates."""
    with _own_garbage():
        gc.disable()
        return _analyse(files, settings, cache, progress)


def _analyse(files: Sequence[ReadFile], settings: Settings, cache: Cache, progress: Progress | None) -> ScanResult:
    screened = screen(files)
    scope = in_scope(screened) | {index for index, file in enumerate(files) if file.found.named}
    total = 2 * len(files)
    report = _Counter(progress, total, len(files))
    facts = _facts(files, scope, settings, cache, report)
    problems = [
        Problem(files[i].found.path, item.message, item.line, fatal=files[i].found.named)
        for i, item in enumerate(facts)
        if isinstance(item, Failure)
    ]
    linked = _link(files, facts, settings)
    outcomes = _outcomes(files, facts, linked, settings, cache, report)
    report.finish()
    findings = [finding for outcome in outcomes for finding in outcome.findings]
    findings.sort(key=lambda f: (f.path, f.span.line, f.span.column, f.rule))
    return ScanResult(
        findings=tuple(findings),
        problems=(*problems, *(problem for outcome in outcomes for problem in outcome.problems)),
        unused=tuple(problem for outcome in outcomes for problem in outcome.unused),
        units=_units(files, facts, linked),
        files=len(files),
        lines=sum(file.lines for file in files),
        seconds=0.0,
    )


def _collect_by_hand() -> None:
    """Collecting garbage while trees are built costs a fifth of the parse: it is done between files instead."""
    gc.collect()
    gc.freeze()
    gc.disable()


@contextmanager
def _own_garbage() -> Iterator[None]:
    """Leave garbage collection as it was, whatever the stages did in this process."""
    enabled = gc.isenabled()
    try:
        yield
    finally:
        gc.unfreeze()
        if enabled:
            gc.enable()


_uncollected = [0]


def _collect(size: int) -> None:
    """Free the cycles of finished files from time to time; ``size`` is that of the file just done, in bytes."""
    _uncollected[0] += size
    if _uncollected[0] > 2_000_000:
        _uncollected[0] = 0
        gc.collect()


class _Counter:
    """Progress over both stages, shown as files."""

    def __init__(self, progress: Progress | None, steps: int, files: int) -> None:
        self._progress = progress
        self._steps = steps
        self._files = files
        self._done = 0

    def add(self, count: int = 1) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(min(self._files, self._done * self._files // max(1, self._steps)), self._files)

    def finish(self) -> None:
        self.add(max(0, self._steps - self._done))


# reading and parsing -------------------------------------------------------------------------------------------------


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
            line = error.lineno
            if notebook is not None and line is not None and line <= len(notebook.lines):
                place = notebook.lines[line - 1]
                raise SourceError(f"cell {place.cell}: {error.msg}", place.line) from None
            raise SourceError(f"syntax error: {error.msg}", line) from None
        except (RecursionError, MemoryError):
            raise SourceError("nested too deeply to be parsed") from None
        except ValueError as error:
            raise SourceError(str(error)) from None
    assert isinstance(tree, ast.Module)
    return tree


# facts ---------------------------------------------------------------------------------------------------------------

_Facts = tuple[FileFacts, FileValues]
_settings: list[Settings] = []


def _prepare_facts(settings: Settings) -> None:
    _settings[:] = [settings]
    _collect_by_hand()


def _facts_of(task: tuple[ReadFile, bool]) -> bytes:
    """The pickled facts of one file, or why there are none."""
    file, wanted = task
    data = pickle.dumps(_extracted(file, wanted), protocol=5)
    _collect(file.size)
    return data


def _extracted(file: ReadFile, wanted: bool) -> _Facts | Failure | None:
    try:
        text, notebook = read(file.found.path, file.found.real)
        tree = parse(text, notebook)
        if not wanted:
            return None
        facts = extract(tree, text)
        if facts.nodes > MAX_NODES:
            return Failure(f"more than {MAX_NODES:,} expressions, as generated code has: skipped")
        names = FileNames(facts, file.module, file.is_package)
        return facts, summarise_file(tree, names, target=_settings[0].target)
    except SourceError as error:
        return Failure(str(error), error.line)
    except (RecursionError, MemoryError):
        return Failure("nested too deeply to be analysed")


def _facts(
    files: Sequence[ReadFile], scope: set[int], settings: Settings, cache: Cache, report: _Counter
) -> list[_Facts | Failure | None]:
    """Facts of the files in scope, None for the others that parse."""
    keys = [
        key("facts", file.digest, file.module, str(file.is_package), str(index in scope), repr(settings.target))
        if not file.found.real.endswith(".ipynb")
        else key("facts of a notebook", file.digest, file.module, str(index in scope), repr(settings.target))
        for index, file in enumerate(files)
    ]
    known = cache.get_many(keys)
    found: list[_Facts | Failure | None] = [None] * len(files)
    missing: list[int] = []
    for index, name in enumerate(keys):
        if name in known:
            found[index] = pickle.loads(known[name])
        else:
            missing.append(index)
    report.add(len(files) - len(missing))
    made: dict[bytes, bytes] = {}
    tasks = [(files[index], index in scope) for index in missing]
    for position, data in each(_facts_of, tasks, settings.jobs, _prepare_facts, (settings,), lambda t: t[0].size):
        index = missing[position]
        made[keys[index]] = data
        found[index] = pickle.loads(data)
        report.add()
    cache.put_many(made)
    return found


def _link(files: Sequence[ReadFile], facts: Sequence[_Facts | Failure | None], settings: Settings) -> Linked:
    indexed: list[IndexedFile] = []
    values: list[FileValues] = []
    for file, item in zip(files, facts, strict=True):
        if isinstance(item, tuple):
            indexed.append(IndexedFile(file.found.path, file.found.real, file.module, file.is_package, item[0]))
            values.append(item[1])
    return Linked(indexed, values, settings)


# rules ---------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Shared:
    """What every worker of the rules stage sees."""

    linked: Linked
    answers: Answers
    facts: Sequence[_Facts | Failure | None]
    rules: tuple[Rule, ...]
    anywhere: tuple[str, ...]  # words of the rules that look at set-up code too
    settings: Settings


_shared: list[_Shared] = []


def _prepare_rules(shared: _Shared) -> None:
    _shared[:] = [shared]
    _collect_by_hand()


def _outcomes(
    files: Sequence[ReadFile],
    facts: Sequence[_Facts | Failure | None],
    linked: Linked,
    settings: Settings,
    cache: Cache,
    report: _Counter,
) -> list[Outcome]:
    from awp_lint.rules.registry import screening_words, select

    rules = select(settings.select, settings.ignore, settings.extend_select)
    words = sorted(screening_words(rules))
    anywhere = tuple(sorted({word.decode() for rule in rules if rule.anywhere for word in rule.words}))
    candidates = [
        index for index, item in enumerate(facts) if isinstance(item, tuple) and _holds(files[index].found.real, words)
    ]
    report.add(len(files) - len(candidates))
    keys = {index: key("findings", files[index].digest, files[index].identity, repr(settings)) for index in candidates}
    known = cache.get_many(keys.values())
    answers = Answers(linked)
    outcomes: dict[int, Outcome] = {}
    for index, name in keys.items():
        if name in known:
            outcome = pickle.loads(known[name])
            assert isinstance(outcome, Outcome)
            if answers.digest(outcome.asked) == outcome.answers:
                outcomes[index] = outcome
                report.add()
    missing = [index for index in candidates if index not in outcomes]
    tasks = [(index, files[index]) for index in missing]
    shared = _Shared(linked, answers, facts, rules, anywhere, settings)
    made: dict[bytes, bytes] = {}
    for _, (index, data) in each(_found_in, tasks, settings.jobs, _prepare_rules, (shared,), lambda t: t[1].size):
        made[keys[index]] = data
        outcomes[index] = pickle.loads(data)
        report.add()
    cache.put_many(made)
    return [outcomes[index] for index in sorted(outcomes)]


def _holds(real: str, words: Sequence[bytes]) -> bool:
    """Whether a file holds one of the rules' words."""
    try:
        raw = read_bytes(real)
    except OSError:
        return False
    return any(word in raw for word in words)


def _found_in(task: tuple[int, ReadFile]) -> tuple[int, bytes]:
    index, file = task
    data = pickle.dumps(_rules_on(index, file), protocol=5)
    _collect(file.size)
    return index, data


def _rules_on(index: int, file: ReadFile) -> Outcome:
    from awp_lint.rules.engine import run_rules

    shared = _shared[0]
    item = shared.facts[index]
    assert isinstance(item, tuple)
    try:
        recorder = Recorder(shared.linked)
        text, notebook = read(file.found.path, file.found.real)
        tree = parse(_to_search(text, item[0], file, recorder), notebook)
        view = FileModel(
            text,
            tree,
            path=file.found.path,
            module=file.module,
            is_package=file.is_package,
            settings=shared.settings,
            facts=item[0],
            project=recorder,
        )
        run = run_rules(view, _rules_for(file.found.path, shared), shared.settings.confidence)
    except (SourceError, RecursionError, MemoryError) as error:
        message = str(error) if isinstance(error, SourceError) else "nested too deeply to be analysed"
        return Outcome((), (Problem(file.found.path, message, fatal=file.found.named),), (), (), b"")
    findings = (*run.findings, *run.suppressed)
    problems = run.problems
    if notebook is not None:
        findings = tuple(_in_cell(finding, notebook) for finding in findings)
        cells = [Problem(file.found.path, f"cell {at.cell}: {text}", at.line) for at, text in notebook.errors]
        problems = (*problems, *cells)
    asked = tuple(recorder.asked)
    return Outcome(findings, problems, run.unused, asked, shared.answers.digest(asked))


def _to_search(text: str, facts: FileFacts, file: ReadFile, project: Recorder) -> str:
    """The text less the functions in which no rule can find anything at the wanted confidence."""
    shared = _shared[0]
    lines = re.split(r"\r\n|\r|\n", text)
    low = shared.settings.confidence is Confidence.LOW

    def needed(function: FunctionFact) -> bool:
        frequency, cold = project.entered(file.module, function.qualname, function.line)
        if not cold and (low if not frequency.known else bool(frequency.path)):
            return True
        if not cold and frequency.known and any(call.loops for call in function.calls):
            return True  # a script's own loops
        body = "\n".join(lines[function.line - 1 : function.body[1]])
        return any(word in body for word in shared.anywhere)

    return without_bodies(text, facts, needed)


def _rules_for(path: str, shared: _Shared) -> Sequence[Rule]:
    """The rules less those that ``per-file-ignores`` takes away."""
    off = [
        prefix.upper()
        for pattern, prefixes in shared.settings.per_file_ignores
        if fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(path.rpartition("/")[2], pattern)
        for prefix in prefixes
    ]
    return [rule for rule in shared.rules if not rule.id.startswith(tuple(off))] if off else shared.rules


def _in_cell(finding: Finding, notebook: Notebook) -> Finding:
    """The finding with cell and line; edits of notebooks would have to be written as JSON, so there are none."""
    first = notebook.lines[finding.span.line - 1]
    last = notebook.lines[min(finding.span.end_line, len(notebook.lines)) - 1]
    fix = None if finding.fix is None else replace(finding.fix, edits=(), imports=())
    span = replace(finding.span, line=first.line, end_line=last.line if last.cell == first.cell else first.line)
    return replace(finding, span=span, cell=first.cell, mark=None, fix=fix)


# units ---------------------------------------------------------------------------------------------------------------


def _units(files: Sequence[ReadFile], facts: Sequence[_Facts | Failure | None], linked: Linked) -> tuple[Unit, ...]:
    """Loops that count steps, tokens or requests, in code that is neither test nor training."""
    found: list[Unit] = []
    for file, item in zip(files, facts, strict=True):
        if not isinstance(item, tuple) or file.found.real.endswith(".ipynb"):
            continue
        for function in item[0].functions:
            if not linked.heats(file.module, function.qualname, function.line):
                continue
            served = Level.REQUEST in linked.entered(file.module, function.qualname, function.line).frequency.path
            for loop in function.loops:
                level = LEVELS[LoopKind(loop.kind)]
                if level is Level.REQUEST and served:
                    continue  # what a request goes over is a part of it
                mark = Mark(
                    MarkKind.LOOP, loop.line, loop.column, loop.end_line, loop.end_column, function.qualname,
                    function.line, Event.NONE,
                )  # fmt: skip
                found.append(Unit(file.found.real, file.module, mark, "request" if level is Level.REQUEST else "step"))
    return tuple(found)
