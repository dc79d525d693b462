"""One wait, copy or small kernel beside what a request or an item of it takes."""

from __future__ import annotations

import ast
import re

from awp_lint.detector.semantics.view import FunctionView, Level
from awp_lint.rules.batching.calls import over_batches
from awp_lint.rules.common import ancestors, callee, names_in, open_ended, target_names, whole_program
from awp_lint.rules.doubts import default_none
from awp_lint.rules.worth.table import Case, doubt

#: Findings about one wait, copy or small kernel: they must run more often than once a request or an item of it.
_SINGLE = r"AWP(10[124567]|30[16]|60[1-4]|610)"
#: What happens a few times a request.
FEW = frozenset((Level.REQUEST, Level.ITEM, Level.LOOP))


@doubt(_SINGLE, seldom=True)
def once_an_item(case: Case) -> bool:
    """Once a request or a batch, or once an item without a loop of its own over them."""
    if case.path == (Level.REQUEST,):
        return True
    if case.path != (Level.REQUEST, Level.ITEM) or _paid_by_each(case):
        return False
    return _without_own_loop(case.node, case.view)


@doubt("AWP105", seldom=True)
def one_selection_an_item(case: Case) -> bool:
    """One selection by a mask for each item, beside all else that is done for it."""
    few = FEW.issuperset(case.path) and Level.ITEM in case.path
    return few and not _paid_by_each(case) and not open_ended(case.view, case.node)


@doubt(_SINGLE, seldom=True)
def beside_generation(case: Case) -> bool:
    """``generate`` or what it calls does it once an item, before or after all the tokens of it."""
    if case.path[-1] is not Level.ITEM or not FEW.issuperset(case.path):
        return False
    functions = (*(frame.function for frame in case.frequency.chain), case.view.qualname)
    names = [name.rpartition(".")[2] for name in functions]
    return "forward" not in names and any(name.startswith("generate") for name in names)


@doubt("AWP101", seldom=True)
def read_of_the_prompt(case: Case) -> bool:
    """A model reads something once an image or row of what it is given, before all the tokens of a request."""
    if case.path not in ((Level.REQUEST, Level.ITEM), (Level.REQUEST, Level.LOOP)) or not case.frequency.chain:
        return False
    first = case.frequency.chain[0]
    return first.line == 0 and first.function.endswith(".generate")


@doubt("AWP10[1-4]", seldom=True)
def told_in_a_text(case: Case) -> bool:
    """The number goes into a text for people that a function returns, once an item."""
    if not FEW.issuperset(case.path) or case.view.loops(case.node):
        return False
    texts = [parent for parent in ancestors(case.view, case.node) if isinstance(parent, ast.JoinedStr)]
    return bool(texts) and isinstance(case.view.statement(case.node), ast.Return)


#: What makes a text of ids.
_TO_TEXT = re.compile(r"(batch_)?decode|(convert_)?ids?(2|_to_)(text|tokens?|words?)|detokenize")


@doubt("AWP101", seldom=True)
def becomes_text(case: Case) -> bool:
    """The ids of a whole item are read to make the text of them that is asked for, or by a tokenizer."""
    cls, _, function = case.view.qualname.rpartition(".")
    if cls.endswith("Tokenizer") and function == "decode":
        return True
    read = (
        isinstance(case.node, ast.Call) and isinstance(case.node.func, ast.Attribute) and callee(case.node) == "tolist"
    )
    if not read or not FEW.issuperset(case.path):
        return False
    names = _made_of(case.node, case.view)
    return any(
        isinstance(call, ast.Call) and _TO_TEXT.fullmatch(callee(call)) is not None and bool(names_in(call) & names)
        for call in case.view.nodes(ast.Call)
    )


def _made_of(node: ast.AST, view: FunctionView) -> frozenset[str]:
    """The names that hold a value, or what is made of it."""
    statement = view.statement(node)
    names: frozenset[str] = frozenset()
    for other in view.nodes(ast.Assign):
        assert isinstance(other, ast.Assign)
        if other is statement or (other.lineno > statement.lineno and names_in(other.value) & names):
            names = names.union(*map(target_names, other.targets))
    return names


@doubt("AWP10[257]", seldom=True)
def of_an_optional_input(case: Case) -> bool:
    """One wait an item, for an input that callers may leave out, beside what is done for every item."""
    if not FEW.issuperset(case.path) or len(case.view.loops(case.node)) > 1:
        return False
    optional = default_none(case.view)
    child: ast.AST = case.node
    for parent in ancestors(case.view, case.node):
        if isinstance(parent, ast.If) and child in parent.body and _given(parent.test) in optional:
            return True
        child = parent
    return False


@doubt("AWP10[14]")
def size_that_callers_give(case: Case) -> bool:
    """A size is read where callers do not give it, who may: ``if size is None: size = int(index.max()) + 1``."""
    optional = default_none(case.view)
    child: ast.AST = case.node
    bound: set[str] = set()
    for parent in ancestors(case.view, case.node):
        if isinstance(child, ast.Assign):
            bound |= {target.id for target in child.targets if isinstance(target, ast.Name)}
        if isinstance(parent, ast.If) and child in parent.body:
            name = _left_out(parent.test)
            if name in bound and (name in optional or _one_of(name, case.view) in optional):
                return True
        if isinstance(parent, ast.If) and child in parent.orelse and _gives_back(parent) in optional:
            return True
        child = parent
    return False


def _one_of(name: str, view: FunctionView) -> str:
    """``sizes`` of ``rows, columns = sizes``, for one of the names."""
    for statement in view.assignments(name):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple):
            return statement.value.id if isinstance(statement.value, ast.Name) else ""
    return ""


def _gives_back(branch: ast.If) -> str:
    """The name of ``if name is not None: return name``."""
    name, last = _given(branch.test), branch.body[-1]
    same = isinstance(last, ast.Return) and isinstance(last.value, ast.Name) and last.value.id == name
    return name if same else ""


@doubt("AWP10[14]")
def kept_by_the_object(case: Case) -> bool:
    """A size is read once for an object, which keeps it.

    ``if size is not None: return size`` stands above, and ``self.size = size`` below.
    """
    statement = case.view.statement(case.node)
    if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
        return False
    name = statement.targets[0].id
    asked = any(
        isinstance(node, ast.If) and node.lineno < statement.lineno and _gives_back(node) == name
        for node in case.view.nodes(ast.If)
    )
    return asked and any(
        isinstance(node, ast.Assign)
        and node.lineno > statement.lineno
        and isinstance(node.targets[0], ast.Attribute)
        and name in names_in(node.value)
        for node in case.view.nodes(ast.Assign)
    )


def _left_out(test: ast.expr) -> str:
    """The name of ``if name is None`` and of ``if given and name is None``."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    for part in parts:
        if isinstance(part, ast.Compare) and isinstance(part.left, ast.Name) and isinstance(part.ops[0], ast.Is):
            return part.left.id
    return ""


def _given(test: ast.expr) -> str:
    """The name of ``if name is not None``."""
    if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and isinstance(test.ops[0], ast.IsNot)):
        return ""
    return test.left.id


def _paid_by_each(case: Case) -> bool:
    """Whether a program's own loop over its items is seen: each of them pays."""
    return whole_program(case.frequency) and Level.ITEM in case.path


def _without_own_loop(node: ast.AST, view: FunctionView) -> bool:
    """Whether a statement that runs once an item does so by its callers, or by loops over batches alone."""
    loops = list(view.loops(node))
    batches = [not isinstance(loop, ast.While) and over_batches(loop) for loop in loops]
    return all(batches) if loops else view.frequency(view.node).path == (Level.REQUEST, Level.ITEM)


DOUBTS = (
    once_an_item,
    one_selection_an_item,
    beside_generation,
    read_of_the_prompt,
    told_in_a_text,
    becomes_text,
    of_an_optional_input,
    size_that_callers_give,
    kept_by_the_object,
)
