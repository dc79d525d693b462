"""How large the weight of a router is, as the model's configuration tells."""

from __future__ import annotations

import ast
import math
import re

from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.common import callee
from awp_lint.rules.numbers import whole

_ROUTER = re.compile(r"(Router|Gate|Gating)$")
#: Of a router: the smallest of which readers called a cast worth saying has 128 experts and 1024 dimensions.
_WORTH_SAYING = 128 * 1024
_DEEP = 4


def small_router(weight: ast.Attribute, view: FunctionView, file: FileView) -> bool:
    """Whether a weight is a router's, and small or of a size that the configuration does not tell."""
    own = (view.class_name or "").rpartition(".")[2]
    return _ROUTER.search(own) is not None and _entries(weight, own, file) < _WORTH_SAYING


def _entries(weight: ast.Attribute, own: str, file: FileView) -> int:
    """How many entries the weight of a class of the file has by default; 0 where that is not told."""
    made = _attributes(own, file)
    held = weight.value if isinstance(weight.value, ast.Attribute) else weight  # `self.classifier.weight`
    value = made.get(held.attr)
    if not isinstance(value, ast.Call):
        return 0
    inner = value.args[0] if callee(value) in ("Parameter", "Buffer") and value.args else value
    if not isinstance(inner, ast.Call):
        return 0
    sizes: list[ast.expr] = list(inner.args)
    if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List):
        sizes = list(sizes[0].elts)
    return math.prod(_number(size, made, file, _DEEP) for size in sizes[:2]) if len(sizes) > 1 else 0


def _attributes(own: str, file: FileView) -> dict[str, ast.expr]:
    """What the constructor of a class of the file makes its attributes of."""
    # From the text: of the file's tree a scan keeps only what can hold a finding.
    block = re.search(rf"^class {own}\b.*?(?=^[^\s)]|\Z)", file.text, re.MULTILINE | re.DOTALL)
    try:
        classes = [node for node in ast.parse(block[0] if block else "").body if isinstance(node, ast.ClassDef)]
    except SyntaxError:
        return {}
    methods = [node for cls in classes for node in cls.body if isinstance(node, ast.FunctionDef)]
    found: dict[str, ast.expr] = {}
    for node in (part for method in methods if method.name == "__init__" for part in ast.walk(method)):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.Assign) and isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
            found[target.attr] = node.value
    return found


def _number(node: ast.expr, made: dict[str, ast.expr], file: FileView, depth: int) -> int:
    """A size by default; 0 where it is not told."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int) else 0
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return sum(_number(side, made, file, depth) for side in (node.left, node.right))
    if not isinstance(node, ast.Attribute) or not depth:
        return 0
    if ast.unparse(node.value) == "self":
        return _number(made[node.attr], made, file, depth - 1) if node.attr in made else 0
    return max((whole(text) or 0 for text in file.defaults(node.attr)), default=0)
