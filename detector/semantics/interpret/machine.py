"""The state of interpreting one definition, and the door through which every expression is evaluated."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from typing import Any

from awp_lint.detector.semantics.outside import Names, Outside, ValueTable
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, Device, Kind, Value, join, make
from awp_lint.detector.semantics.view import Target

MAX_DEPTH = 120  # nested expressions and statements; deeper code stays unknown
MAX_ITEMS = 8  # of a list whose items are kept apart
MAX_STEPS = 400_000  # expressions evaluated in one definition, loops counted each time round

Env = dict[str, Value]
Args = list[Value]
Keywords = dict[str, Value]


class Budget(Exception):
    """The definition is larger than MAX_STEPS: what is known so far stands."""


class Table:
    """What each expression of a definition may be; implements :class:`ValueTable`."""

    __slots__ = ("_attributes", "_bound", "_locals", "_returns", "values")

    def __init__(self) -> None:
        self.values: dict[ast.expr, Value] = {}
        self._returns = UNKNOWN
        self._attributes: dict[str, Value] = {}
        self._bound: dict[str, list[Value]] = {}
        self._locals: dict[str, Value] | None = None

    def value(self, node: ast.expr) -> Value:
        """The value where the expression stands; UNKNOWN for code that was not reached."""
        return self.values.get(node, UNKNOWN)

    @property
    def returns(self) -> Value:
        """The returned values joined; of a generator function, an iterator over what it yields."""
        return self._returns

    @property
    def attributes(self) -> Mapping[str, Value]:
        """``self.x`` assigned here, the assignments joined."""
        return self._attributes

    @property
    def locals(self) -> Mapping[str, Value]:
        """Local names, all their assignments joined: what nested functions see."""
        if self._locals is None:
            self._locals = {
                name: functools.reduce(join, values)
                for name, values in self._bound.items()
                if not name.startswith("self.")
            }
        return self._locals

    def close(self, returns: Value, bound: dict[str, list[Value]], exits: list[Env]) -> None:
        """Set what is known once the whole definition has been interpreted.

        An attribute holds what it was assigned last: on the way to each exit, joined.
        """
        self._returns = returns
        self._bound = bound
        attributes = [name for name in bound if name.startswith("self.")]
        if attributes:
            for name in attributes:
                last = [env[name] for env in exits if name in env]
                self._attributes[name[5:]] = functools.reduce(join, last or bound[name])


class Context:
    """What operations on values need to know besides the values."""

    __slots__ = ("ambient", "dotted", "instances", "outside", "symbolic", "target", "torchy")

    def __init__(self, outside: Outside, target: Target, symbolic: bool = False, torchy: bool = True) -> None:
        self.outside = outside
        self.target = target
        self.symbolic = symbolic  # unknown results keep a reference in `cls`, for the linker to follow
        self.torchy = torchy  # the file works with torch: names and methods may be read as tensors'
        self.ambient = Device.HOST if target.device == "cpu" else Device.AMBIENT
        self.dotted: dict[str, Value] = {}  # what dotted names mean, once asked for
        self.instances: dict[tuple[str, bool], Value] = {}


class Known:
    """What the functions of one file found dotted names and classes to mean, for the next one."""

    def __init__(self) -> None:
        self._found: dict[bool, tuple[dict[str, Value], dict[tuple[str, bool], Value]]] = {}

    def lend(self, context: Context) -> None:
        """Let a context with the same outside and target work with it. Files' functions may differ in ``torchy``."""
        found = self._found.setdefault(context.torchy, (context.dotted, context.instances))
        context.dotted, context.instances = found


class Machine(Context):
    """Everything that changes while one definition is interpreted."""

    __slots__ = (
        "asked",
        "attributes",
        "bound",
        "breaks",
        "calls",
        "class_attributes",
        "cls",
        "continues",
        "declared",
        "default_device",
        "depth",
        "enclosing",
        "env",
        "exits",
        "globals",
        "live",
        "names",
        "qualname",
        "returned",
        "self_name",
        "steps",
        "table",
        "yielded",
    )

    def __init__(
        self,
        names: Names,
        outside: Outside,
        *,
        qualname: str,
        cls: str | None,
        enclosing: ValueTable | None,
        target: Target,
        symbolic: bool = False,
        torchy: bool | None = None,
    ) -> None:
        if torchy is None:
            torchy = uses_torch(names)
        super().__init__(outside, target, symbolic, torchy)
        self.names = names
        self.qualname = qualname
        self.cls = cls
        self.enclosing: Mapping[str, Value] = getattr(enclosing, "locals", {}) if enclosing is not None else {}
        self.table: dict[ast.expr, Value] = {}
        self.env: Env = {}
        self.globals: dict[str, Value] = {}
        self.asked: set[str] = set()  # names of the module whose meaning was asked
        self.live = True
        self.depth = 0
        self.steps = 0
        self.self_name: str | None = None
        self.declared: dict[str, Value] = {}  # parameters annotated as tensors, which they stay
        self.default_device: Value | None = None
        self.attributes: dict[str, Value] = {}
        self.bound: dict[str, list[Value]] = {}  # all that each name, or ``self.x``, was assigned
        self.returned: list[Value] = []
        self.yielded: list[Value] = []
        self.exits: list[Env] = []  # environments where the definition returns, noted once it assigns to self
        self.breaks: list[Env] = []
        self.continues: list[Env] = []
        self.calls: list[tuple[str, Args, Keywords]] = []  # what is called, for the linker (only where symbolic)
        self.class_attributes: dict[str, dict[str, Value]] = {}  # of the classes defined here, by qualified name

    def bind(self, name: str, value: Value) -> None:
        """Assign a local name (or ``self.x``) on the current path."""
        if value.fresh:
            value = make(
                value.kind, value.device, value.dtype, value.rank, value.element, value.items, value.cls,
                value.constant, False, value.certainty, value.reasons,
            )  # fmt: skip
        self.env[name] = value
        known = self.bound.get(name)
        if known is None:
            self.bound[name] = [value]
        elif known[-1] is not value:
            known.append(value)


_USUAL = tuple(ast.Name(id=name, ctx=ast.Load()) for name in ("torch", "nn", "F", "Tensor"))


def uses_torch(names: Names) -> bool:
    """Whether a file works with torch: one of the usual names means something of torch."""
    return any((names.qualified(name) or "").startswith("torch") for name in _USUAL)


Handler = Callable[[Machine, Any], Value]
EXPRESSIONS: dict[type[ast.AST], Handler] = {}


def evaluate(m: Machine, node: ast.expr) -> Value:
    """The value of an expression on the current path, noted in the table."""
    kind = node.__class__
    if kind is ast.Name:
        known = m.env.get(node.id)  # type: ignore[attr-defined]
        if known is not None:
            m.table[node] = known
            return known
    if m.depth > MAX_DEPTH:
        return UNKNOWN
    m.depth += 1
    value = EXPRESSIONS[kind](m, node)
    m.depth -= 1
    m.table[node] = value
    return value


def merge(a: Env, b: Env) -> Env:
    """The environment after two paths meet; a name bound on one path only keeps that value."""
    if a is b:
        return a
    merged = dict(a)
    for name, value in b.items():
        other = merged.get(name)
        if other is None:
            merged[name] = value
        elif other is not value:
            merged[name] = join(other, value)
    return merged


def store(m: Machine, target: ast.expr, value: Value) -> None:
    """Assign to a name or to ``self.x``; other targets keep no value of their own."""
    if isinstance(target, ast.Name):
        m.bind(target.id, value)
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == m.self_name:
        m.bind("self." + target.attr, value)


def expression(*types: type[ast.AST]) -> Callable[[Handler], Handler]:
    """Register the handler of an expression type."""

    def register(handler: Handler) -> Handler:
        for kind in types:
            EXPRESSIONS[kind] = handler
        return handler

    return register


NONE = make(Kind.NONE, constant=True, certainty=Certainty.PROVEN)
