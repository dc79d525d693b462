"""The structure of one definition: its nodes, parents, statements, loops, bindings and writes.

Pure syntax, no names resolved and no values. A definition is a function, a method, a lambda, a nested function or the
module's top level; nodes of nested definitions belong to those, while decorators, defaults and annotations of a nested
definition, and the bodies of classes, belong to the definition around it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
DefinitionNode: TypeAlias = FunctionNode | ast.Module
LoopNode: TypeAlias = ast.For | ast.AsyncFor | ast.While | ast.comprehension

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

#: Methods that change their receiver, besides the in-place tensor methods, which end in an underscore.
_MUTATORS = frozenset(
    (
        *("append", "extend", "insert", "pop", "popleft", "appendleft", "clear", "update", "setdefault", "remove"),
        *("discard", "add", "sort", "reverse", "put"),
    )
)


class Definition:
    """One definition of a file. ``outer`` is the definition around it, ``cls`` the class that holds a method."""

    def __init__(
        self, node: DefinitionNode, qualname: str, outer: Definition | None, cls: ast.ClassDef | None, prefix: str
    ) -> None:
        self.node = node
        self.qualname = qualname
        self.outer = outer
        self.cls = cls
        self.prefix = prefix  # qualified name of nested definitions, without their own name, "" at top level
        self.nested: list[Definition] = []
        self._nodes: dict[tuple[type[ast.AST], ...], list[ast.AST]] = {}

    @cached_property
    def tables(self) -> tuple[dict[ast.AST, ast.AST], dict[type[ast.AST], list[ast.AST]], list[FunctionNode]]:
        parents: dict[ast.AST, ast.AST] = {}
        by_type: dict[type[ast.AST], list[ast.AST]] = {}
        inner: list[FunctionNode] = []
        stack = _own_children(self.node)[::-1]
        for child in stack:
            parents[child] = self.node
        while stack:
            node = stack.pop()
            kind = node.__class__
            known = by_type.get(kind)
            if known is None:
                by_type[kind] = [node]
            else:
                known.append(node)
            if kind is ast.Name or kind is ast.Constant:
                continue
            if kind is ast.Attribute:
                parents[node.value] = node  # type: ignore[attr-defined]
                stack.append(node.value)  # type: ignore[attr-defined]
                continue
            if kind in _FUNCTIONS:
                assert isinstance(node, _FUNCTIONS)
                inner.append(node)
                children = _outer_children(node)
            else:
                children = child_nodes(node)
            for child in children:
                parents[child] = node
            children.reverse()
            stack += children
        return parents, by_type, inner

    @property
    def first_line(self) -> int:
        """The line of the first decorator, of the definition without one: ``co_firstlineno``."""
        if isinstance(self.node, ast.Module):
            return 1
        if isinstance(self.node, ast.Lambda) or not self.node.decorator_list:
            return self.node.lineno
        return self.node.decorator_list[0].lineno

    def nodes(self, *types: type[ast.AST]) -> Sequence[ast.AST]:
        """The nodes of exactly these types, in source order."""
        known = self._nodes.get(types)
        if known is None:
            by_type = self.tables[1]
            if len(types) == 1:
                known = by_type.get(types[0], [])
            else:
                known = [node for kind in types for node in by_type.get(kind, ())]
            # statements of one type were met in source order
            if known and hasattr(known[0], "lineno") and not (len(types) == 1 and issubclass(types[0], ast.stmt)):
                known = _sorted(known)
            self._nodes[types] = known
        return known

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node around it, None for the definition itself and for nodes of other definitions."""
        return self.tables[0].get(node)

    def ancestors(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Pairs (child, parent), from the node outwards up to the definition."""
        parents = self.tables[0]
        child = node
        while (parent := parents.get(child)) is not None:
            yield child, parent
            child = parent

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that holds the node; for the body of a lambda the nearest one around it."""
        definition: Definition | None = self
        current: ast.AST = node
        while definition is not None:
            while not isinstance(current, ast.stmt):
                above = definition.parent(current)
                if above is None:
                    break
                current = above
            if isinstance(current, ast.stmt):
                return current
            current, definition = definition.node, definition.outer
        raise ValueError("the node does not belong to this definition")

    def loops(self, node: ast.AST) -> tuple[LoopNode, ...]:
        """The loops around the node, innermost first: what runs once an iteration, so not a ``for`` loop's iterable."""
        found: list[LoopNode] = []
        skip_from: ast.comprehension | None = None
        for child, parent in self.ancestors(node):
            if isinstance(parent, (ast.For, ast.AsyncFor)):
                if child is not parent.iter and child not in parent.orelse:
                    found.append(parent)
            elif isinstance(parent, ast.While):
                if child not in parent.orelse:
                    found.append(parent)
            elif isinstance(parent, ast.comprehension):
                if child is not parent.iter:
                    found.append(parent)
                skip_from = parent
            elif isinstance(parent, _COMPREHENSIONS):
                generators = parent.generators
                before = generators[: generators.index(skip_from)] if skip_from in generators else generators
                found.extend(reversed(before))
                skip_from = None
        return tuple(found)

    @cached_property
    def _bindings(self) -> dict[str, list[ast.stmt]]:
        found: dict[str, list[ast.stmt]] = {}
        has_classes = bool(self.tables[1].get(ast.ClassDef))

        def bind(name: str, node: ast.AST) -> None:
            if has_classes and self._in_class_body(node):
                return
            statement = node if isinstance(node, ast.stmt) else self.statement(node)
            known = found.setdefault(name, [])
            if not known or known[-1] is not statement:
                known.append(statement)

        for node in self.tables[1].get(ast.Name, ()):
            if node.ctx.__class__ is not ast.Load:  # type: ignore[attr-defined]
                bind(node.id, node)  # type: ignore[attr-defined]
        for node in self.nodes(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
            assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            bind(node.name, node)
        for node in self.nodes(ast.Import, ast.ImportFrom):
            assert isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names:
                bind(alias.asname or alias.name.partition(".")[0], node)
        for node in self.nodes(ast.ExceptHandler, ast.MatchAs, ast.MatchStar):
            if (name := getattr(node, "name", None)) is not None:
                bind(name, node)
        for statements in found.values():
            statements.sort(key=position)
        return found

    def _in_class_body(self, node: ast.AST) -> bool:
        return any(isinstance(parent, ast.ClassDef) and child in parent.body for child, parent in self.ancestors(node))

    def assignments(self, name: str) -> Sequence[ast.stmt]:
        """The statements that bind the local name, in source order."""
        return self._bindings.get(name, ())

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters, in order, ``*args`` and ``**kwargs`` last."""
        if isinstance(self.node, ast.Module):
            return ()
        return parameter_names(self.node.args)

    @cached_property
    def local_names(self) -> frozenset[str]:
        """Names that are local here: parameters and bindings, less what ``global`` and ``nonlocal`` take away."""
        elsewhere = {name for node in self.nodes(ast.Global, ast.Nonlocal) for name in getattr(node, "names", ())}
        return frozenset((*self.parameters, *self._bindings)) - elsewhere

    @cached_property
    def _uses(self) -> dict[str, list[ast.Name]]:
        found: dict[str, list[ast.Name]] = {}
        for node in self.nodes(ast.Name):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append(node)
        for inner in self.nested:
            hidden = inner.local_names
            for name, nodes in inner._uses.items():
                if name not in hidden:
                    found.setdefault(name, []).extend(nodes)
        for nodes in found.values():
            nodes.sort(key=position)
        return found

    def uses(self, name: str) -> Sequence[ast.Name]:
        """The loads of the local name, here and in nested definitions that do not rebind it."""
        return self._uses.get(name, ())

    def written_in(self, loop: ast.AST) -> frozenset[str]:
        """Local names and dotted ``self.x`` that may be bound or mutated in the loop's body or header."""
        found: set[str] = set()
        roots: list[ast.AST] = [loop]
        if isinstance(loop, ast.comprehension):
            above = self.parent(loop)
            roots = [above] if above is not None else roots
        elif isinstance(loop, (ast.For, ast.AsyncFor)):
            roots = [loop.target, *loop.body]
        elif isinstance(loop, ast.While):
            roots = [loop.test, *loop.body]
        for root in roots:
            for node in descendants(root):
                _collect_writes(node, found)
        return frozenset(found)


def _collect_writes(node: ast.AST, found: set[str]) -> None:
    """Add the names that this one node binds or mutates."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
    elif isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            _add_target(node, found)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in _MUTATORS or (name.endswith("_") and not name.endswith("__")):
                _add_target(node.func.value, found)
        for keyword in node.keywords:
            if keyword.arg == "out":
                _add_target(keyword.value, found)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        found.add(node.name)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        found.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        found.add(node.name)


def _add_target(node: ast.expr, found: set[str]) -> None:
    """What ``node.x = …`` or ``node[i] = …`` writes: the root name, and ``self.x`` by its own name."""
    current = node
    while isinstance(current, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
        if isinstance(current, ast.Attribute) and isinstance(current.value, ast.Name) and current.value.id == "self":
            found.add(f"self.{current.attr}")
            return
        current = current.func if isinstance(current, ast.Call) else current.value
    if isinstance(current, ast.Name):
        found.add(current.id)
    elif isinstance(current, (ast.Tuple, ast.List)):
        for element in current.elts:
            _add_target(element, found)


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below, in field order; contexts and operators, which are shared objects, left out."""
    kind = node.__class__
    usual = _USUAL.get(kind)
    if usual is not None:
        return usual(node)
    fields = _child_fields.get(kind)
    if fields is None:
        fields = _child_fields[kind] = tuple(name for name in kind._fields if name not in _LEAVES.get(kind, _LEAF))
    found: list[ast.AST] = []
    for name in fields:
        value = getattr(node, name)
        if value.__class__ is list:
            if value and isinstance(value[0], ast.AST) and None not in value:
                found += value  # nearly all lists
            elif value:
                found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def is_none(node: ast.AST | None) -> bool:
    """Whether an expression is the word ``None``."""
    return isinstance(node, ast.Constant) and node.value is None


def descendants(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all nodes below but contexts and operators, in no order: ``ast.walk`` at a third of its cost."""
    pending = [node]
    while pending:
        part = pending.pop()
        yield part
        kind = part.__class__
        if kind is ast.Attribute:
            pending.append(part.value)  # type: ignore[attr-defined]
        elif kind is not ast.Name and kind is not ast.Constant:
            pending += child_nodes(part)


_LEAF = frozenset(
    ("ctx", "op", "ops", "id", "attr", "arg", "name", "asname", "level", "kind", "conversion", "type_comment")
)
#: Where the usual names of leaf fields hold a node.
_LEAVES: dict[type[ast.AST], frozenset[str]] = {
    ast.Constant: frozenset(("value", "kind")),
    ast.Global: frozenset(("names",)),
    ast.Nonlocal: frozenset(("names",)),
    **({ast.TypeAlias: frozenset(("type_params",))} if hasattr(ast, "TypeAlias") else {}),
}
_child_fields: dict[type[ast.AST], tuple[str, ...]] = {}
#: The children of the types that most nodes are of, at a third of the cost of going through their fields.
_USUAL: dict[type[ast.AST], Callable[[Any], list[ast.AST]]] = {
    ast.Name: lambda node: [],
    ast.Attribute: lambda node: [node.value],
    ast.Call: lambda node: [node.func, *node.args, *node.keywords],
    ast.keyword: lambda node: [node.value],
    ast.BinOp: lambda node: [node.left, node.right],
    ast.UnaryOp: lambda node: [node.operand],
    ast.BoolOp: lambda node: [*node.values],
    ast.Compare: lambda node: [node.left, *node.comparators],
    ast.Subscript: lambda node: [node.value, node.slice],
    ast.Tuple: lambda node: [*node.elts],
    ast.List: lambda node: [*node.elts],
    ast.JoinedStr: lambda node: [*node.values],
    ast.Expr: lambda node: [node.value],
    ast.Assign: lambda node: [*node.targets, node.value],
    ast.AugAssign: lambda node: [node.target, node.value],
    ast.Return: lambda node: [] if node.value is None else [node.value],
    ast.If: lambda node: [node.test, *node.body, *node.orelse],
    ast.For: lambda node: [node.target, node.iter, *node.body, *node.orelse],
}


_place = operator.attrgetter("lineno", "col_offset")


def _sorted(nodes: list[ast.AST]) -> list[ast.AST]:
    """Nodes in source order, those that have no place first."""
    try:
        return sorted(nodes, key=_place)
    except AttributeError:
        return sorted(nodes, key=position)


def position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def parameter_names(args: ast.arguments) -> tuple[str, ...]:
    """Names of all parameters in call order, the starred ones last."""
    plain = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return (*plain, *(arg.arg for arg in (args.vararg, args.kwarg) if arg is not None))


def _own_children(node: DefinitionNode) -> list[ast.AST]:
    """What belongs to the definition itself: the body."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    return list(node.body)


def _outer_children(node: FunctionNode) -> list[ast.AST]:
    """What a nested definition leaves to the definition around it: decorators, defaults and annotations."""
    found: list[ast.AST] = []
    args = node.args
    if not isinstance(node, ast.Lambda):
        found.extend(node.decorator_list)
        found.extend(
            a.annotation for a in (*args.posonlyargs, *args.args, *args.kwonlyargs) if a.annotation is not None
        )
        if node.returns is not None:
            found.append(node.returns)
    found.extend(args.defaults)
    found.extend(default for default in args.kw_defaults if default is not None)
    return found
