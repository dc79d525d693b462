"""Running the rules on one file: one walk, one dispatch, one set of findings.

Every definition's nodes are asked for once, for all rules together. Candidates become findings here: fingerprints,
precedence, suppressions, marks and scores are made in one place, so that a rule only says what it saw.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from awp_lint.detector.finding import Confidence, Finding, Fix, Mark, MarkKind, Problem, Safety
from awp_lint.detector.project.source import Source
from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView, Level
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import may_be_sure, runs_often, serves_somebody
from awp_lint.rules.nodemap import Definition, Mismatch, first_line
from awp_lint.rules.normal import digest, normal_form
from awp_lint.rules.registry import all_rules
from awp_lint.rules.suppressions import Suppressions
from awp_lint.rules.worth import counts_anywhere, weighed

_IDENTIFIERS = re.compile(rb"\w+")
_APART = bytes(code if _IDENTIFIERS.match(bytes([code])) else 0x20 for code in range(256))
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)

# How many times a level repeats, for order only: no figure made from these is ever shown.
LEVEL_WEIGHT: dict[Level, float] = {
    Level.REQUEST: 1,
    Level.STEP: 40,
    Level.TOKEN: 200,
    Level.LAYER: 32,
    Level.EXPERT: 16,
    Level.ITEM: 8,
    Level.ELEMENT: 200,
    Level.LOOP: 8,
}
CONFIDENCE_WEIGHT = {Confidence.HIGH: 1.0, Confidence.MEDIUM: 0.5, Confidence.LOW: 0.1}


@dataclass(frozen=True, slots=True)
class RuleRun:
    """What the rules found in one file.

    ``suppressed`` are findings that a comment silences (their ``suppressed`` holds its reason); ``unused`` are comments
    that silenced nothing, ``unmapped`` counts candidates whose rewrite was lost because the two syntax trees disagreed.
    """

    findings: tuple[Finding, ...] = ()
    suppressed: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    unused: tuple[Problem, ...] = ()
    unmapped: int = 0


class Dispatch:
    """Which rules are asked about a node: by its type and, for a call, by the last name of what is called."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.kinds: dict[type[ast.AST], list[Rule]] = {}
        for rule in rules:
            for kind in rule.nodes:
                self.kinds.setdefault(kind, []).append(rule)
        self._calls = [(rule, _asked_about(rule)) for rule in self.kinds.get(ast.Call, [])]
        self._by_name: dict[str, list[Rule]] = {}
        self._about_any = [rule for rule, names in self._calls if names is None]
        self._names = frozenset().union(*(names for _, names in self._calls if names is not None))
        self.walked = [kind for kind in self.kinds if kind not in _DEFINITIONS]

    def about_call(self, name: str) -> Sequence[Rule]:
        """The rules that are asked about a call of something with this last name."""
        if name not in self._names:
            return self._about_any
        known = self._by_name.get(name)
        if known is None:
            known = [rule for rule, names in self._calls if names is None or name in names]
            self._by_name[name] = known
        return known


@functools.cache
def _asked_about(rule: Rule) -> frozenset[str] | None:
    return rule.asked_about()


@functools.lru_cache(maxsize=2048)
def _dispatch(rules: tuple[Rule, ...]) -> Dispatch:
    return Dispatch(rules)


class Vocabulary:
    """Tells of words whether a text holds them.

    Most are not there: those of rules are looked for among the text's different identifiers before the whole of it.
    """

    def __init__(self, text: str) -> None:
        self._raw = text.encode("utf-8", "surrogatepass")
        self._known: dict[bytes, bool] = {}

    @functools.cached_property
    def _parts(self) -> frozenset[bytes]:
        return _parts_of(set(self._raw.translate(_APART).split()))

    def has(self, word: bytes) -> bool:
        """Whether the text holds one word, anywhere: the quick way to ask of a few."""
        return word in self._raw

    def holds(self, *words: bytes) -> bool:
        """Whether the text holds one of the words, anywhere."""
        return any(map(self._holds, words))

    def _holds(self, word: bytes) -> bool:
        known = self._known.get(word)
        if known is None:
            part = _parts().get(word, b"")
            # a word that is its own part has been seen, one without a part can be anywhere
            known = not part or part in self._parts
            if known and part != word:
                known = word in self._raw
            self._known[word] = known
        return known


_MAX_TOLD = 150_000  # identifiers of which it is remembered what they hold
_told: dict[bytes, frozenset[bytes]] = {}  # identifiers, to what they hold of the words of rules
_shared: dict[frozenset[bytes], frozenset[bytes]] = {}


def _parts_of(identifiers: set[bytes]) -> frozenset[bytes]:
    """What identifiers hold of the words of rules. The same identifiers come in most files of a project."""
    found = set(map(_told.get, identifiers))
    if None in found:
        if len(_told) > _MAX_TOLD:
            _told.clear()
        _tell([identifier for identifier in identifiers if identifier not in _told])
        found = set(map(_told.get, identifiers))
    return frozenset().union(*(parts for parts in found if parts is not None))


def _tell(identifiers: Sequence[bytes]) -> None:
    """Note what identifiers hold, all of them searched together."""
    together = b" %b " % b" ".join(identifiers)
    held: dict[bytes, set[bytes]] = {}
    for part in {*_parts().values()} - {b""}:
        at = together.find(part)
        while at >= 0:
            end = together.index(b" ", at)
            held.setdefault(together[together.rindex(b" ", 0, at) + 1 : end], set()).add(part)
            at = together.find(part, end)
    for identifier in identifiers:
        parts = frozenset(held.get(identifier, ()))
        _told[identifier] = _shared.setdefault(parts, parts)


@functools.cache
def _parts() -> dict[bytes, bytes]:
    """The words of all rules, each with the longest part of it that can only stand within one identifier, "" where it
    has none."""
    words = {word for rule in all_rules() for word in rule.words}
    return {word: max(_IDENTIFIERS.findall(word), key=len, default=b"") for word in words}


def _renamed(view: FunctionView, file: FileView) -> dict[str, str]:
    """Last names of what was imported under another name, in the file and in the definition."""
    everywhere: dict[str, str] | None = file.memo.get(_renamed)
    if everywhere is None:
        names = {bound: meaning.rpartition(".")[2] for bound, meaning in file.imports.items()}
        everywhere = file.memo[_renamed] = {bound: name for bound, name in names.items() if name != bound}
    own = [alias for node in view.nodes(ast.ImportFrom) for alias in getattr(node, "names", ())]
    return {**everywhere, **{a.asname: a.name for a in own if a.asname is not None}} if own else everywhere


@dataclass(slots=True)
class _Hit:
    rule: Rule
    candidate: Candidate
    view: FunctionView
    also: tuple[str, ...] = ()


def run_rules(
    file: FileView,
    rules: Sequence[Rule],
    confidence: Confidence = Confidence.LOW,
    vocabulary: Vocabulary | None = None,
) -> RuleRun:
    """Run the rules on a file, whose ``vocabulary`` may be known. Findings below ``confidence`` are dropped before any
    LibCST work.

    Never raises for a rule's fault: a rule that fails on a definition becomes a problem.
    """
    vocabulary = vocabulary or Vocabulary(file.text)
    silenced = Suppressions(file.text)
    problems = [Problem(file.path, message, line) for line, message in silenced.problems]
    source = Source(path=file.path, text=file.text)
    searched = Confidence.LOW if silenced else confidence  # else a comment on a hidden finding would seem unused
    wanted = [rule for rule in rules if rule.confidence.order >= searched.order and vocabulary.holds(*rule.words)]
    hits: list[_Hit] = []
    if wanted:
        low = searched is Confidence.LOW
        groups: dict[tuple[bool, bool, bool, bool], _Asked] = {}
        for view in file.functions():
            if _is_empty(view):
                continue
            served = _may_be_served(view, searched)
            kind = (served, True, True, True)
            if not low:
                kind = (served, runs_often(view), may_be_sure(view), serves_somebody(view))
            asked = groups.get(kind)
            if asked is None:
                asked = groups[kind] = _Asked([rule for rule in wanted if _fits(rule, *kind)], convinced=not low)
            chosen = asked.concerned(view, file, problems)
            if chosen:
                hits.extend(_walk(view, file, _dispatch(chosen), problems))
    hidden = [hit for hit in hits if hit.candidate.confidence.order < confidence.order]
    hits = [hit for hit in hits if hit.candidate.confidence.order >= confidence.order]
    hits = _one_per_place(hits)
    hits.sort(key=lambda hit: (hit.candidate.node.lineno, hit.candidate.node.col_offset, hit.rule.id))
    run = _Findings(file, source, silenced, problems)
    found = [run.finding(hit) for hit in hits]
    for hit in hidden:
        run.silenced_by(hit)
    unused = [
        Problem(file.path, f"unused suppression of {name}", line)
        for line, name in silenced.unused((rule.id for rule in rules), (rule.id for rule in all_rules()))
    ]
    return RuleRun(
        findings=tuple(f for f in found if f.suppressed is None),
        suppressed=tuple(f for f in found if f.suppressed is not None),
        problems=tuple(problems),
        unused=tuple(unused),
        unmapped=run.unmapped,
    )


def _may_be_served(view: FunctionView, confidence: Confidence) -> bool:
    """Whether the definition holds code that runs for requests; unknown counts where low confidence is wanted."""
    frequency = view.frequency(view.node)
    if not frequency.known:
        return confidence is Confidence.LOW
    if frequency.path:
        return True
    return any(view.frequency(_inside(loop)).path for loop in view.nodes(*_LOOPS))


def _fits(rule: Rule, served: bool, often: bool, sure: bool, counts: bool) -> bool:
    """Whether a rule may find something wanted in a definition, by how often, how surely and for whom that runs."""
    if not (served or rule.anywhere) or not (counts or counts_anywhere(rule.id)):
        return False
    return (often or not rule.repeated) and (sure or not rule.doubted)


def _is_empty(view: FunctionView) -> bool:
    """Whether a definition does nothing, as those whose bodies were left out."""
    body = view.node.body
    return isinstance(body, list) and len(body) == 1 and isinstance(body[0], ast.Pass)


def _inside(loop: ast.AST) -> ast.AST:
    """A node that runs once a pass of the loop."""
    if isinstance(loop, ast.comprehension):
        return loop.target
    assert isinstance(loop, ast.For | ast.AsyncFor | ast.While)
    return loop.body[0]


class _Asked:
    """Rules that are asked about many definitions; those that want to see each one first are kept apart."""

    def __init__(self, rules: Sequence[Rule], convinced: bool = False) -> None:
        self._rules = tuple(rules)
        doubting = [rule for rule in rules if convinced and type(rule).convinced is not Rule.convinced]
        self._choosy = [(rule, rule.convinced) for rule in doubting]
        self._choosy += [(rule, rule.concerns) for rule in rules if type(rule).concerns is not Rule.concerns]

    def concerned(self, view: FunctionView, file: FileView, problems: list[Problem]) -> tuple[Rule, ...]:
        """The rules that may find something in the definition."""
        left_out: set[str] = set()
        for rule, chooses in self._choosy:
            try:
                if rule.id not in left_out and not chooses(view, file):
                    left_out.add(rule.id)
            except Exception as error:  # as in the walk
                left_out.add(rule.id)
                problems.append(_fault(rule, view, getattr(view.node, "lineno", None), error))
        return tuple([rule for rule in self._rules if rule.id not in left_out]) if left_out else self._rules


def _walk(view: FunctionView, file: FileView, dispatch: Dispatch, problems: list[Problem]) -> Iterator[_Hit]:
    """The hits in a definition, in source order of the nodes that were asked about."""
    broken: set[str] = set()
    found: list[tuple[tuple[int, int], _Hit]] = []

    def ask(node: ast.AST, rules: Sequence[Rule]) -> None:
        for rule in rules:
            if rule.id in broken:
                continue
            try:
                for candidate in rule.candidates(node, view, file):
                    found.append((_start(node), _Hit(rule, weighed(rule.id, candidate, view, file), view)))
            except Exception as error:  # a fault of ours must not cost the user the other findings
                broken.add(rule.id)
                problems.append(_fault(rule, view, getattr(node, "lineno", None), error))

    ask(view.node, dispatch.kinds.get(view.node.__class__, ()))
    own = len(found)
    others = _renamed(view, file)
    for kind in dispatch.walked:
        if kind is not ast.Call:
            for node in view.nodes(kind):
                ask(node, dispatch.kinds[kind])
            continue
        for node in view.nodes(ast.Call):
            func = node.func  # type: ignore[attr-defined]
            name = func.attr if func.__class__ is ast.Attribute else getattr(func, "id", "")
            rules = dispatch.about_call(others.get(name, name))
            if rules:
                ask(node, rules)
    found[own:] = sorted(found[own:], key=operator.itemgetter(0))
    for _, hit in found:
        yield hit


def _start(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _fault(rule: Rule, view: FunctionView, line: int | None, error: Exception) -> Problem:
    return Problem(view.path, f"{rule.id} failed on {view.qualname}: {type(error).__name__}: {error}", line)


def _one_per_place(hits: list[_Hit]) -> list[_Hit]:
    """Drop what another rule's finding on the same place explains better; its id goes to that finding's ``also``."""
    by_rule: dict[str, list[_Hit]] = defaultdict(list)
    for hit in hits:
        by_rule[hit.rule.id].append(hit)
    lost: set[int] = set()
    for winner in hits:
        for name in winner.rule.over:
            for loser in by_rule.get(name, ()):
                if loser is winner or not _explains(winner.candidate, loser.candidate, winner.view is loser.view):
                    continue
                lost.add(id(loser))
                if name not in winner.also:
                    winner.also = (*winner.also, name)
    return [hit for hit in hits if id(hit) not in lost]


def _explains(winner: Candidate, loser: Candidate, same_view: bool) -> bool:
    if not same_view:
        return False
    return any(node is loser.node for node in (winner.node, *winner.covers))


class _Findings:
    """Turns hits into findings, in source order."""

    def __init__(self, file: FileView, source: Source, silenced: Suppressions, problems: list[Problem]) -> None:
        self.file = file
        self.source = source
        self.silenced = silenced
        self.problems = problems
        self.unmapped = 0
        self._seen: Counter[tuple[str, str, str]] = Counter()
        self._definitions: dict[int, Definition] = {}
        self._names: dict[tuple[str, object], str] = {}

    def finding(self, hit: _Hit) -> Finding:
        rule, candidate, view = hit.rule, hit.candidate, hit.view
        code = normal_form(candidate.node, header_only=True)
        place = (rule.id, view.qualname, code)
        ordinal = self._seen[place]
        self._seen[place] += 1
        statement = view.statement(candidate.node)
        line, column, end_line, end_column = _extent(candidate.node)
        reason = self.silenced_by(hit)
        return Finding(
            id=digest(rule.id, self.file.module or self.file.path, view.qualname, code, str(ordinal)),
            rule=rule.id,
            name=rule.name,
            path=self.file.path,
            span=self.source.span(line, column, end_line, end_column),
            function=view.qualname,
            message=f"{candidate.message}; {candidate.action}.",
            why=candidate.why,
            root_cause=rule.root_cause,
            frequency=str(candidate.frequency),
            confidence=candidate.confidence,
            mark=_mark(rule, candidate, view),
            chain=candidate.frequency.chain,
            group=digest(rule.id, view.qualname.rpartition(".")[2], normal_form(statement, header_only=True)),
            also=hit.also,
            related=candidate.related,
            score=_score(rule, candidate),
            suppressed=reason,
            fix=self._fix(hit) if reason is None else None,
        )

    def silenced_by(self, hit: _Hit) -> str | None:
        """The reason of the comment that silences a hit, "" where it gives none; None where nothing does."""
        first, last = header_lines(hit.view.statement(hit.candidate.node))
        line = hit.candidate.node.lineno
        return self.silenced.reason((hit.rule.id, *hit.also), min(first, line), max(last, line))

    def _fix(self, hit: _Hit) -> Fix:
        manual = Fix(title=hit.candidate.action, safety=Safety.MANUAL)
        if not hit.rule.rewrites():
            return manual
        definition = self._definitions.get(id(hit.view))
        if definition is None:
            definition = self._definitions[id(hit.view)] = Definition(
                hit.view, self.file, self.source, names=self._names
            )
        definition.imports.clear()
        try:
            fix = hit.rule.rewrite(hit.candidate, definition)
        except Mismatch:
            self.unmapped += 1
            return manual
        except Exception as error:  # as in the walk
            self.problems.append(_fault(hit.rule, hit.view, hit.candidate.node.lineno, error))
            return manual
        if fix is None:
            return manual
        return replace(fix, imports=(*fix.imports, *sorted(definition.imports, key=str)))


def header_lines(statement: ast.stmt) -> tuple[int, int]:
    """First and last line of a statement, of its header only where it has a block."""
    first = first_line(statement)
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        return first, max(statement.lineno, first_line(body[0]) - 1)
    return first, statement.end_lineno or statement.lineno


def _extent(node: ast.expr | ast.stmt) -> tuple[int, int, int, int]:
    """Where a finding starts and ends: compound statements are shown by their header."""
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    if isinstance(node, ast.For | ast.AsyncFor):
        end_line, end_column = node.iter.end_lineno or node.lineno, node.iter.end_col_offset or node.col_offset
    elif isinstance(node, ast.While | ast.If):
        end_line, end_column = node.test.end_lineno or node.lineno, node.test.end_col_offset or node.col_offset
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        prefix = {ast.FunctionDef: 4, ast.AsyncFunctionDef: 10, ast.ClassDef: 6}[type(node)]
        end_line, end_column = node.lineno, node.col_offset + prefix + len(node.name.encode())
    elif isinstance(node, ast.With | ast.AsyncWith):
        item = node.items[-1].optional_vars or node.items[-1].context_expr
        end_line, end_column = item.end_lineno or node.lineno, item.end_col_offset or node.col_offset
    return node.lineno, node.col_offset, end_line, end_column


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", None) or 1, getattr(node, "end_col_offset", None) or 0


def _mark(rule: Rule, candidate: Candidate, view: FunctionView) -> Mark:
    kind = candidate.mark or rule.mark
    node: ast.AST = candidate.node
    if kind is MarkKind.STATEMENT and isinstance(node, ast.expr):
        statement = view.statement(node)
        if not hasattr(statement, "body"):
            node = statement
    if kind is MarkKind.FUNCTION and isinstance(view.node, ast.FunctionDef | ast.AsyncFunctionDef):
        node = view.node
    if candidate.lines is not None:
        first, last = candidate.lines
        line, column = first.lineno, first.col_offset
        end_line, end_column = _end(last)
    elif isinstance(node, ast.stmt) and kind is MarkKind.STATEMENT:
        line, column, end_line, end_column = _extent(node)
    else:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end_line, end_column = _end(node)
    return Mark(
        kind=kind,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        function=view.qualname,
        function_line=_function_line(view.node),
        expects=rule.event,
    )


def _function_line(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module) -> int:
    if isinstance(node, ast.Module):
        return 1
    return node.lineno if isinstance(node, ast.Lambda) else first_line(node)


def _score(rule: Rule, candidate: Candidate) -> float:
    frequency = candidate.frequency
    weight = frequency_weight(frequency)
    return weight * rule.cost_us * CONFIDENCE_WEIGHT[candidate.confidence]


def frequency_weight(frequency: Frequency) -> float:
    """How often, as one number for ordering: set-up far below a request, unknown like a request."""
    if not frequency.known:
        return 1.0
    if not frequency.path:
        return 0.01
    weight = 1.0
    for level in frequency.path:
        weight *= LEVEL_WEIGHT[level]
    return weight
