"""What a model's replacement of a function must not do: checked on the syntax trees, without running anything.

The gates are narrow on purpose. A patch may change the finding's own statement and those that share a variable with it.
In these it may use what stood there before and what the rule's page shows as the remedy, put together as it was put
together before; variables that it introduces may stand for what they were computed from. All else stays as it is,
signature, branches, handlers, returns and order included. Right patches may be refused by this; it is the wrong ones
that must not pass.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from awp_lint.detector.finding import Span
from awp_lint.patches.llm.order import Placed, order_faults
from awp_lint.patches.llm.rows import Function, Row, rows
from awp_lint.rules.base import Rule

_KEPT_KINDS = (
    "Return", "Raise", "Assert", "Break", "Continue", "Try", "TryStar", "ExceptHandler", "With", "AsyncWith", "Global",
    "Nonlocal", "Delete", "Import", "ImportFrom", "FunctionDef", "AsyncFunctionDef", "ClassDef", "Match", "else of Try",
    "finally",
)  # fmt: skip
_NO_REMEDY = ("ast:Lambda", "ast:NamedExpr", "ast:Await", "ast:Yield", "ast:YieldFrom")
_MODULES = frozenset(("name:torch", "name:F"))  # where a function comes from is no part of what it is given
_FORBIDDEN = frozenset((
    "eval", "exec", "compile", "__import__", "open", "input", "getattr", "setattr", "delattr", "globals", "locals",
    "vars", "breakpoint", "print",
))  # fmt: skip


@dataclass(frozen=True)
class Vocabulary:
    """What the remedy of a rule may add and drop: labels of syntax, from the rule's page."""

    added: frozenset[str]
    dropped: frozenset[str]


def vocabulary(rule: Rule | None, advice: str = "") -> Vocabulary:
    """What a rule's page shows as the remedy and as the fault; ``advice`` is what a finding of it recommends.

    The remedy may have the syntax, attributes and keywords of the good example, and the calls, operators and constants
    that the bad one has not; it may drop what only the bad one has.
    """
    if rule is None:
        return Vocabulary(frozenset(), frozenset())
    bad, good = (_labels_of(inspect.cleandoc(text)) for text in (rule.bad, rule.good))
    mentioned = _mentioned(f"{rule.safety} {advice}")
    added = {
        label
        for label in good | mentioned
        if label not in bad or label.startswith(("ast:", "attr:", "keyword:", "slice:"))
    }
    added |= {f"attr:{label.removeprefix('call:')}" for label in added if label.startswith("call:")}
    added |= {"attr:nn", "attr:functional"} if any(label.startswith("call:") for label in added) else set()
    added -= {*_NO_REMEDY, *(f"call:{name}" for name in _FORBIDDEN)}
    return Vocabulary(frozenset(added), frozenset(bad - good))


_CODE = re.compile(r"`([^`\n]+)`")
_CALLED = re.compile(r"([A-Za-z_]\w*)\(")
_DOTTED = re.compile(r"\.([A-Za-z_]\w*)")


def _mentioned(text: str) -> set[str]:
    """The functions and attributes in the code of a text."""
    code = " ".join(_CODE.findall(text))
    names = {*_CALLED.findall(code), *_DOTTED.findall(code)}
    return {f"call:{name}" for name in names} | {f"attr:{name}" for name in names}


def _labels_of(text: str) -> set[str]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return set()
    return {label for node in ast.walk(tree) if (label := _label(node)) and not label.startswith("name:")}


def faults(old: Function, new: Function, span: Span, rule: Rule | None, advice: str = "") -> list[str]:
    """Why the new function is not taken, each reason in a line; empty where nothing speaks against it.

    ``advice`` is what the finding recommends.
    """
    found = list(_signature_faults(old, new))
    if found:
        return found
    words = vocabulary(rule, advice)
    goes, comes, kept = _difference(old, new)
    removed, added = [place.row for place in goes], [place.row for place in comes]
    subject = [row for row in rows(old) if row.first <= span.end_line and row.last >= span.line]
    if not subject:
        return ["the finding's statement is not in the function"]
    found += _confinement_faults(removed, added, subject)
    found += _label_faults(removed, added, words, _own_labels(old, span))
    found += _name_faults(old, removed, added, kept, words)
    found += order_faults(goes, comes, kept)
    if not found:
        found += _shape_faults(removed, added, words, _own_labels(old, span), [r for r in subject if r.kind == "If"])
    return list(dict.fromkeys(found))


# the frame -----------------------------------------------------------------------------------------------------------


def _signature_faults(old: Function, new: Function) -> Iterator[str]:
    if type(old) is not type(new):
        yield "async is changed"
    if old.name != new.name:
        yield f"the name is changed to {new.name}"
    if ast.dump(old.args) != ast.dump(new.args) or _dump(old.returns) != _dump(new.returns):
        yield "the signature is changed"
    if [ast.dump(d) for d in old.decorator_list] != [ast.dump(d) for d in new.decorator_list]:
        yield "the decorators are changed"


def _dump(node: ast.AST | None) -> str:
    return "" if node is None else ast.dump(node)


def _difference(old: Function, new: Function) -> tuple[list[Placed], list[Placed], list[Row]]:
    """Rows that go, rows that come, and rows that stay in their order and block."""
    before, after = rows(old), rows(new)
    matcher = difflib.SequenceMatcher(None, [r.key for r in before], [r.key for r in after], autojunk=False)
    removed: list[Placed] = []
    added: list[Placed] = []
    kept: list[Row] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            kept += after[j1:j2]
        else:
            removed += [Placed(row, len(kept)) for row in before[i1:i2]]
            added += [Placed(row, len(kept)) for row in after[j1:j2]]
    return removed, added, kept


# what may be touched -------------------------------------------------------------------------------------------------


def _walk(found: Iterable[Row]) -> Iterator[ast.AST]:
    for row in found:
        for part in row.parts:
            yield from ast.walk(part)


def _parts_of(found: Iterable[Row]) -> list[ast.AST]:
    return [part for row in found for part in row.parts]


def _names(found: Iterable[Row], context: type[ast.expr_context]) -> set[str]:
    return {n.id for n in _walk(found) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def _confinement_faults(removed: list[Row], added: list[Row], subject: list[Row]) -> Iterator[str]:
    bound, used = _names(subject, ast.Store), _names(subject, ast.Load)
    for row in removed:
        related = row in subject or _names([row], ast.Load) & bound or _names([row], ast.Store) & used
        if not related:
            yield f"line {row.first}, which has nothing to do with the finding, is changed or moved"
    before, after = Counter(r.kind for r in removed), Counter(r.kind for r in added)
    for kind in _KEPT_KINDS:
        if before[kind] != after[kind]:
            what = kind.lower().replace("excepthandler", "except")
            yield f"{'more' if after[kind] > before[kind] else 'fewer'} `{what}` statements than before"
    in_subject = Counter(row.kind for row in subject)
    for kind in ("If", "For", "AsyncFor", "While", "else of If", "else of For", "else of While"):
        if before[kind] - after[kind] > in_subject[kind]:
            yield f"a branch or loop (`{kind.lower()}`) is dropped"
        if after[kind] > before[kind]:
            yield f"a branch or loop (`{kind.lower()}`) is added"


# what it may be made of ----------------------------------------------------------------------------------------------


def _label(node: ast.AST) -> str:
    """What a node is, for comparison; "" for nodes that say nothing."""
    if isinstance(node, ast.operator | ast.unaryop | ast.boolop | ast.cmpop):
        return f"op:{type(node).__name__}"
    if isinstance(node, ast.Call):
        return f"call:{_called(node)}"
    if isinstance(node, ast.Attribute):
        return f"attr:{node.attr}"
    if isinstance(node, ast.keyword):
        return f"keyword:{node.arg}"
    if isinstance(node, ast.Constant):
        return f"const:{type(node.value).__name__}:{node.value!r}"
    if isinstance(node, ast.Slice):
        return "slice:" + "".join("-" if part is None else "x" for part in (node.lower, node.upper, node.step))
    if isinstance(node, ast.Name):
        return f"name:{node.id}"
    if isinstance(node, ast.expr | ast.stmt | ast.comprehension | ast.withitem):
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Compare | ast.Expr | ast.Assign | ast.AnnAssign):
            return ""
        return f"ast:{type(node).__name__}"
    return ""


def _called(node: ast.Call) -> str:
    func = node.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _labels(found: Iterable[Row]) -> Counter[str]:
    return Counter(
        label
        for node in _walk(found)
        if (label := _label(node)) and not label.startswith("name:") and label not in ("ast:Tuple", "ast:Starred")
    )


def _own_labels(function: Function, span: Span) -> frozenset[str]:
    """The labels of the finding's own node, which the remedy may drop: the outermost call there, with its name."""
    best: ast.expr | None = None
    for node in ast.walk(function):
        if isinstance(node, ast.Call | ast.Attribute) and (node.lineno, node.end_lineno) == (span.line, span.end_line):
            width = (node.end_col_offset or 0) - node.col_offset
            if width == span.end_column - span.column and node.col_offset == span.column - 1:
                best = node
                break
    if best is None:
        return frozenset()
    labels = {_label(best)}
    if isinstance(best, ast.Call):
        labels |= {_label(best.func)} | {_label(k) for k in best.keywords}
    return frozenset(labels)


def _words(label: str) -> str:
    kind, _, name = label.partition(":")
    return f"`{name.partition(':')[2] or name}`" if kind == "const" else f"`{name}` ({kind})"


def _label_faults(removed: list[Row], added: list[Row], words: Vocabulary, own: frozenset[str]) -> Iterator[str]:
    before, after = _labels(removed), _labels(added)
    for label, count in sorted((after - before).items()):
        if label in words.added:
            continue
        yield f"{_words(label)} is new there and not what the rule's page proposes" + (
            f" ({count} times)" if count > 1 else ""
        )
    for label in sorted(before - after):
        if label not in words.dropped and label not in own:
            yield f"{_words(label)} is dropped"


def _name_faults(
    old: Function, removed: list[Row], added: list[Row], kept: list[Row], words: Vocabulary
) -> Iterator[str]:
    known = {n.id for n in ast.walk(old) if isinstance(n, ast.Name)} | {a.arg for a in _arguments(old)}
    bound_before, bound_after = _names(removed, ast.Store), _names(added, ast.Store)
    fresh = bound_after - known
    for name in sorted(_names(added, ast.Load)):
        if name in _FORBIDDEN and name not in _names(removed, ast.Load):
            yield f"`{name}` is used"
        elif name not in known and name not in fresh and f"call:{name}" not in words.added:
            yield f"`{name}` is not known there"
    for name in sorted((bound_after & known) - bound_before):
        yield f"`{name}` is bound anew"
    for name in sorted((bound_before - bound_after) & _names([*kept, *added], ast.Load)):
        yield f"`{name}` is not bound any more"
    stores = {ast.dump(n) for n in _walk(removed) if _is_store(n)}
    for node in _walk(added):
        if _is_store(node) and ast.dump(node) not in stores:
            yield f"`{ast.unparse(node)[:60]}` is written to"


def _arguments(function: Function) -> list[ast.arg]:
    return [node for node in ast.walk(function.args) if isinstance(node, ast.arg)]


def _is_store(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)


# how it may be put together ------------------------------------------------------------------------------------------


Leaves = frozenset[str]
Shape = tuple[Leaves, ...]


def _shape_faults(
    removed: list[Row], added: list[Row], words: Vocabulary, own: frozenset[str], tests: list[Row]
) -> Iterator[str]:
    """Operators, calls, subscripts and bindings have to be put together as before.

    Each part of a node is known by the names and constants in it, where a variable that the changed rows bind counts as
    what it was made of: one that the patch introduces may stand only for what it was computed from. Where one of
    ``tests`` (the finding's own `if`) goes, what was bound under it may be made of the test as well.
    """
    ignored = words.added | words.dropped | own
    fresh = _names(added, ast.Store) - _names(removed, ast.Store)
    gone = _names(removed, ast.Store) - _names(added, ast.Store)
    old_bindings, new_bindings = _bindings(removed, ignored), _bindings(added, ignored)
    before: dict[str, list[_Parts]] = {}
    for row in removed:
        for label, bound, parts in _shapes(row, ignored):
            before.setdefault(label, []).append(_parts(_without(bound, gone), parts, gone, old_bindings))
    gone_tests = [row for row in tests if row in removed]
    test = {f"name:{name}" for name in fresh} | _expanded(
        frozenset().union(*(_leaves(part, ignored) for part in _parts_of(gone_tests))), old_bindings
    )
    at_hand = {name.id for name in _walk(removed) if isinstance(name, ast.Name)} | fresh
    at_hand |= {label.removeprefix("call:") for label in words.added if label.startswith("call:")}
    for row in added:
        for label, bound, parts in _shapes(row, ignored):
            if label in ignored and label.startswith("call:"):
                continue  # the page says that it is called, not with what: equality is for a run
            if label == "Assign" and not _without(bound, fresh) and _names([row], ast.Load) <= at_hand:
                continue  # a new variable, made of what was at hand
            shape = _parts(_without(bound, fresh), parts, fresh, new_bindings)
            if label not in before and label in words.added:
                continue
            if (
                gone_tests
                and label == "Assign"
                and any(shape.with_test(known, test) for known in before.get(label, ()))
            ):
                continue
            if not any(shape.same(known) for known in before.get(label, ())):
                yield f"line {row.first} puts `{label.partition(':')[2] or label.lower()}` together in another way"


@dataclass(frozen=True)
class _Parts:
    """The parts of a node as they are, with variables expanded, and whether a variable of one side alone is in them."""

    raw: Shape
    expanded: Shape
    own: tuple[bool, ...]

    def with_test(self, other: _Parts, test: set[str] | Leaves) -> bool:
        """Whether all parts are the same but for what a test that is gone was made of."""
        if len(self.raw) != len(other.raw):
            return False
        pairs = zip(self.expanded, other.expanded, strict=True)
        return self.raw[0] == other.raw[0] and all(old <= new <= old | test for new, old in pairs)

    def same(self, other: _Parts) -> bool:
        """Whether all parts are the same; where a variable is on one side alone, by what it was made of."""
        if len(self.raw) != len(other.raw):
            return False
        return all(
            self.expanded[n] == other.expanded[n] if self.own[n] or other.own[n] else self.raw[n] == other.raw[n]
            for n in range(len(self.raw))
        )


def _parts(bound: Leaves, parts: Shape, only_here: set[str], bindings: dict[str, Leaves]) -> _Parts:
    names = {f"name:{name}" for name in only_here}
    return _Parts(
        (bound, *parts),
        (bound, *(_expanded(part, bindings) for part in parts)),
        (False, *(bool(part & names) for part in parts)),
    )


def _without(leaves: Leaves, names: set[str]) -> Leaves:
    return leaves - {f"name:{name}" for name in names}


def _bindings(found: list[Row], ignored: frozenset[str]) -> dict[str, Leaves]:
    """What the variables that rows bind are made of, in leaves."""
    bindings: dict[str, Leaves] = {}
    for row in found:
        pairs: list[tuple[ast.AST, ast.AST]] = []
        if row.kind in ("For", "AsyncFor"):
            pairs.append((row.parts[0], row.parts[1]))
        for node in _walk([row]):
            if isinstance(node, ast.Assign):
                pairs += [(target, node.value) for target in node.targets]
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                pairs.append((node.target, node.value))
            elif isinstance(node, ast.comprehension):
                pairs.append((node.target, node.iter))
        for target, value in pairs:
            for name in ast.walk(target):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    leaf = f"name:{name.id}"
                    bindings[leaf] = bindings.get(leaf, frozenset()) | _leaves(value, ignored)
    return bindings


def _expanded(leaves: Leaves, bindings: dict[str, Leaves]) -> Leaves:
    """Leaves with variables replaced by what they were made of; one that is made of itself stays as well."""
    reached = _reached(leaves, bindings)
    return frozenset(leaf for leaf in reached if leaf not in bindings or leaf in _reached(bindings[leaf], bindings))


def _reached(leaves: Leaves, bindings: dict[str, Leaves]) -> set[str]:
    reached: set[str] = set()
    pending = list(leaves)
    while pending:
        leaf = pending.pop()
        if leaf not in reached:
            reached.add(leaf)
            pending += bindings.get(leaf, ())
    return reached


def _shapes(row: Row, ignored: frozenset[str]) -> Iterator[tuple[str, Leaves, Shape]]:
    """Of everything in a row that has parts: its label, the names that it binds, its parts."""
    if row.kind in ("For", "AsyncFor"):
        yield row.kind, _leaves(row.parts[0], ignored), (_leaves(row.parts[1], ignored),)
    elif row.kind in ("If", "While", "With", "AsyncWith"):
        yield row.kind, frozenset(), tuple(_leaves(part, ignored) for part in row.parts)
    for node in _walk([row]):
        parts: list[ast.AST | None]
        if isinstance(node, ast.BinOp):
            label, parts = f"op:{type(node.op).__name__}", [node.left, node.right]
        elif isinstance(node, ast.UnaryOp):
            label, parts = f"op:{type(node.op).__name__}", [node.operand]
        elif isinstance(node, ast.BoolOp):
            label, parts = f"op:{type(node.op).__name__}", list(node.values)
        elif isinstance(node, ast.Compare):
            label = "op:" + ".".join(type(op).__name__ for op in node.ops)
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.AugAssign):
            label, parts = f"aug:{type(node.op).__name__}", [node.target, node.value]
        elif isinstance(node, ast.Assign):
            bound = frozenset(leaf for target in node.targets for leaf in _leaves(target, ignored))
            yield "Assign", bound, (_leaves(node.value, ignored),)
            continue
        elif isinstance(node, ast.Call):
            label = f"call:{_called(node)}"
            receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
            named = sorted(node.keywords, key=lambda k: k.arg or "")
            parts = [receiver, *node.args, *(k.value for k in named)]
        elif isinstance(node, ast.Subscript):
            label, parts = "ast:Subscript", [node.value, node.slice]
        elif isinstance(node, ast.Slice):
            label, parts = _label(node), [node.lower, node.upper, node.step]
        elif isinstance(node, ast.IfExp):
            label, parts = "ast:IfExp", [node.test, node.body, node.orelse]
        elif isinstance(node, ast.Return):
            label, parts = "ast:Return", [node.value]
        elif isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load):
            label, parts = "ast:Tuple", list(node.elts)
        else:
            continue
        yield label, frozenset(), tuple(frozenset() if part is None else _leaves(part, ignored) for part in parts)


def _leaves(node: ast.AST, ignored: frozenset[str]) -> frozenset[str]:
    """Names, constants, attributes, calls and operators in a part, less what the remedy may add or drop."""
    return (
        frozenset(
            label
            for one in ast.walk(node)
            if (label := _label(one))
            and label not in ignored
            and label.split(":")[0] in ("name", "const", "attr", "op", "slice")
        )
        - _MODULES
        - {f"name:{label.partition(':')[2]}" for label in ignored if label.startswith("call:")}
    )
