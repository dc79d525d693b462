"""Where a Python number serves as well as the 0-d tensor that stands there now."""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import ancestors, callee

#: Functions whose positional arguments are sizes or bounds, by dotted name.
SIZED = frozenset({
    "torch.arange", "torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn", "torch.eye", "torch.full",
    "torch.linspace", "torch.tril_indices", "torch.triu_indices",
})  # fmt: skip
SIZED_METHODS = frozenset({
    "view", "reshape", "expand", "repeat", "new_zeros", "new_ones", "new_empty", "narrow", "unflatten", "tile",
})  # fmt: skip

_EXACT = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)  # whole numbers give the same on either side
_IDENTITY = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_NUMBERS = frozenset({"range", "int", "float", "bool"})


def read_of(view: FunctionView, node: ast.expr) -> ast.Call | None:
    """The call ``node.item()`` or ``node.tolist()`` around a 0-d tensor, whose value is the number itself."""
    attribute = view.parent(node)
    if not isinstance(attribute, ast.Attribute) or attribute.attr not in ("item", "tolist"):
        return None
    call = view.parent(attribute)
    if isinstance(call, ast.Call) and call.func is attribute and not call.args and not call.keywords:
        return call
    return None


def takes_number(view: FunctionView, node: ast.expr, depth: int = 2) -> bool:
    """Whether everything that becomes of a value is a slice bound, a size, a range, a conversion or a test.

    Whole-number arithmetic on the way there and plain local names are seen through. Anything that could tell a tensor
    from a number (methods, indexing of tensors, formatting, other calls) answers False.
    """
    child: ast.AST = node
    compared = packed = logical = divided = False
    for parent in ancestors(view, node):
        if isinstance(parent, ast.BinOp):
            divided = divided or isinstance(parent.op, ast.Div)
            if compared or packed or not isinstance(parent.op, (*_EXACT, ast.Div)):
                return False
        elif isinstance(parent, ast.UnaryOp):
            if isinstance(parent.op, ast.Not):
                return True
            if isinstance(parent.op, ast.Invert):
                return False
        elif isinstance(parent, ast.Slice):
            return not divided
        elif isinstance(parent, ast.FormattedValue):
            return any(isinstance(outer, ast.Raise | ast.Assert) for outer in ancestors(view, parent))
        elif isinstance(parent, ast.Compare):
            if packed and all(isinstance(op, ast.Eq | ast.NotEq) for op in parent.ops):
                return True  # of shapes: a tuple or a list with it
            if (
                compared
                or packed
                or divided
                or any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in parent.ops)
            ):
                return False
            compared = True
        elif isinstance(parent, ast.If | ast.While | ast.IfExp):
            return child is parent.test
        elif isinstance(parent, ast.comprehension):
            return child in parent.ifs
        elif isinstance(parent, ast.BoolOp):
            logical = True  # `a or b` may be the value itself: a test must follow
        elif isinstance(parent, ast.Tuple | ast.List):
            packed = True
        elif isinstance(parent, ast.keyword):
            if parent.arg not in ("size", "end", "start", "step", "steps"):
                return False
        elif isinstance(parent, ast.Call):
            converts = isinstance(parent.func, ast.Name) and parent.func.id == "int"
            return not logical and (converts or not divided) and _call_takes_number(view, parent, child, packed)
        elif isinstance(parent, ast.Subscript):
            return child is parent.slice and not view.value(parent.value).is_tensor and not packed
        elif isinstance(parent, ast.Assign):
            return not (packed or logical or divided) and depth > 0 and _name_takes_number(view, parent, depth - 1)
        else:
            return False
        child = parent
    return False


def _call_takes_number(view: FunctionView, call: ast.Call, child: ast.AST, packed: bool) -> bool:
    if child is call.func:
        return False
    name = callee(call)
    if isinstance(call.func, ast.Name) and name in _NUMBERS and not view.assignments(name):
        return not packed
    dotted = view.qualified(call.func) or ""
    if dotted == "torch.nn.functional.interpolate":
        return isinstance(child, ast.keyword) and child.arg == "size"
    if dotted in SIZED:
        return child is not call.args[-1] if name == "full" and call.args else True
    if isinstance(call.func, ast.Attribute) and name in SIZED_METHODS:
        return view.value(call.func.value).is_tensor
    return False


def _name_takes_number(view: FunctionView, statement: ast.Assign, depth: int) -> bool:
    """Whether a plain local name that takes the value is used in such places only."""
    if len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name):
        return False
    name = statement.targets[0].id
    if list(view.assignments(name)) != [statement]:
        return False
    return all(view.parent(use) is not None and takes_number(view, use, depth) for use in view.uses(name))


def number_use(view: FunctionView, use: ast.expr) -> bool:
    """Whether a number may stand in the place of a use: it is read there, or :func:`takes_number`."""
    if view.parent(use) is None:
        return False  # in a nested function
    return read_of(view, use) is not None or takes_number(view, use)


def guarded(view: FunctionView, node: ast.AST, loop: ast.AST) -> bool:
    """Whether something between a loop and a node decides if the node runs in a pass at all."""
    child = node
    for parent in ancestors(view, node):
        if parent is loop:
            return False
        if isinstance(parent, ast.If | ast.IfExp) and child is not parent.test:
            return True
        if isinstance(parent, ast.BoolOp) and child is not parent.values[0]:
            return True
        if isinstance(parent, ast.Try | ast.With | ast.AsyncWith | ast.match_case | ast.comprehension | ast.Lambda):
            return True
        child = parent
    return True
