"""What a value is to a step: made in it, given to it, kept outside of it, or a number that changes at every step."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Mapping

from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FunctionView


class Role(enum.IntEnum):
    """Roles in order: of several values together the last one decides."""

    FRESH = 0  # made in the step
    POSITION = 1  # a tensor made from a number that changes
    INPUT = 2  # a tensor given to the step, so in the graph a static copy
    GIVEN = 3  # an object given to the step: a cache
    OUTER = 4  # the module and its attributes, globals
    MOVING = 5  # a Python number that changes from step to step
    GROWN = 6  # keys or values of a cache that grows by concatenation


def worst(roles: Iterable[Role]) -> Role:
    """The role of several values together."""
    return max(roles, default=Role.FRESH)


#: Tensor methods whose result may share memory with the receiver.
VIEWS = frozenset({
    "view", "reshape", "transpose", "permute", "chunk", "split", "unbind", "expand", "expand_as", "unsqueeze",
    "squeeze", "flatten", "unflatten", "narrow", "select", "contiguous", "to", "float", "half", "bfloat16", "type_as",
    "detach", "swapaxes", "movedim", "t", "view_as", "reshape_as", "unfold", "diagonal", "values", "items", "get",
})  # fmt: skip
_PASSES_ON = frozenset({"zip", "enumerate", "list", "tuple", "reversed", "iter", "next", "sorted", "dict"})
_READS = frozenset({"int", "float", "min", "max", "abs", "round", "str", "range"})
_NUMBERS = frozenset({"shape", "dtype", "device", "ndim"})


class Roles:
    """The roles of one function's values, given those of its parameters.

    ``returned`` tells the role of what a call of the project returns; None where the call is none.
    """

    def __init__(self, view: FunctionView, parameters: Mapping[str, Role], returned: Mapping[int, Role]) -> None:
        self._view = view
        self._returned = returned
        self._names: dict[str, Role] = dict(parameters)
        self._locals = frozenset(parameters)
        for _ in range(3):  # loops carry roles round
            self._bind()

    def _bind(self) -> None:
        view = self._view
        for node in view.nodes(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.NamedExpr, ast.comprehension):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._store(target, node.value)
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
                if node.value is not None:
                    self._store(node.target, node.value)
            elif isinstance(node, ast.AugAssign):
                if isinstance(node.target, ast.Name):
                    self._merge(node.target.id, self.of(node.value))
            elif isinstance(node, ast.For | ast.comprehension):
                self._iterate(node.target, node.iter)

    def _store(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            role = self.of(value)
            if role is not Role.GROWN:  # whose uses are followed one by one
                self._merge(target.id, role)
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else None
            for index, part in enumerate(target.elts):
                one = parts[index] if parts is not None and len(parts) == len(target.elts) else value
                self._store(part.value if isinstance(part, ast.Starred) else part, one)

    def _iterate(self, target: ast.expr, source: ast.expr) -> None:
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and isinstance(target, ast.Tuple):
            if source.func.id == "zip" and len(source.args) == len(target.elts):
                for part, one in zip(target.elts, source.args, strict=True):
                    self._iterate(part, one)
                return
            if source.func.id == "enumerate" and len(target.elts) == 2:
                self._store(target.elts[0], ast.Constant(0))
                self._iterate(target.elts[1], source.args[0])
                return
        self._store(target, source)

    def _merge(self, name: str, role: Role) -> None:
        self._names[name] = max(self._names.get(name, Role.FRESH), role)

    def of(self, node: ast.expr) -> Role:
        """The role of an expression's value."""
        if isinstance(node, ast.Name):
            if node.id in self._names:
                return self._names[node.id]
            return Role.OUTER if self._view.qualified(node) is not None else Role.FRESH
        if isinstance(node, ast.Attribute):
            if id(node) in self._returned:
                return self._returned[id(node)]  # a property
            role = self.of(node.value)
            return Role.FRESH if node.attr in _NUMBERS else role
        if isinstance(node, ast.Subscript):
            if id(node) in self._returned:
                return self._returned[id(node)]  # the length of a cache
            role = self.of(node.value)
            index = self.of(node.slice)
            return max(role, Role.POSITION) if index in (Role.MOVING, Role.POSITION) else role
        if isinstance(node, ast.Slice):
            return worst(self.of(part) for part in (node.lower, node.upper, node.step) if part is not None)
        if isinstance(node, ast.Starred | ast.Await):
            return self.of(node.value)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.IfExp):
            return worst((self.of(node.body), self.of(node.orelse)))
        if isinstance(node, ast.BoolOp):
            return worst(map(self.of, node.values))
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return worst(map(self.of, node.elts))
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            return self.of(node.elt)
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
            return self._computed(node, [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)])
        return Role.FRESH

    def _computed(self, node: ast.expr, parts: list[ast.expr]) -> Role:
        """Arithmetic makes a new tensor, or of a changing number another one."""
        roles = set(map(self.of, parts))
        if not roles & {Role.MOVING, Role.POSITION}:
            return Role.FRESH
        if Role.POSITION in roles or self.is_tensor(node):
            return Role.POSITION
        return Role.MOVING

    def is_tensor(self, node: ast.expr) -> bool:
        """Whether the expression, or for arithmetic an operand of it, is known to be a tensor."""
        if self._view.value(node).is_tensor:
            return True
        if isinstance(node, ast.BinOp | ast.Compare | ast.UnaryOp):
            return any(self.is_tensor(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
        return False

    def _call(self, node: ast.Call) -> Role:
        given = [*node.args, *(k.value for k in node.keywords)]
        func = node.func
        if id(node) in self._returned:
            return self._returned[id(node)]
        if isinstance(func, ast.Name) and func.id in _PASSES_ON and self._view.qualified(func) is None:
            return worst(map(self.of, given))
        roles = [self.of(part) for part in given]
        if isinstance(func, ast.Attribute):
            base = self.of(func.value)
            value = self._view.value(func.value)
            if func.attr in VIEWS and value.kind not in (Kind.MODULE, Kind.EXTERNAL):
                return base
            if value.kind is not Kind.EXTERNAL and base is Role.POSITION:
                return Role.POSITION
        changing = {Role.MOVING, Role.POSITION} & set(roles)
        if not changing:
            return Role.FRESH
        name = self._view.qualified(func) or ""
        if name.startswith("torch.") or self._view.value(node).is_tensor:
            return Role.POSITION
        if isinstance(func, ast.Name) and func.id in _READS:
            return Role.MOVING
        return Role.POSITION if changing == {Role.POSITION} else Role.FRESH
