"""Statements: how they change the environment, with joins at branches and loops."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from awp_lint.detector.semantics.interpret import objects, tensors
from awp_lint.detector.semantics.interpret.annotations import annotated
from awp_lint.detector.semantics.interpret.choices import chosen, put_on_host
from awp_lint.detector.semantics.interpret.machine import MAX_DEPTH, Env, Machine, evaluate, merge, store
from awp_lint.detector.semantics.interpret.narrowing import assume
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, Device, Kind, Value, join, make

MAX_ROUNDS = 3  # of a loop whose variables still change

_DISPLAYS = (ast.Tuple, ast.List)

Statement = Callable[[Machine, Any], None]
STATEMENTS: dict[type[ast.AST], Statement] = {}


def statement(*types: type[ast.AST]) -> Callable[[Statement], Statement]:
    """Register the handler of a statement type."""

    def register(handler: Statement) -> Statement:
        for kind in types:
            STATEMENTS[kind] = handler
        return handler

    return register


def block(m: Machine, body: list[ast.stmt]) -> None:
    """Interpret statements until the path ends."""
    if m.depth > MAX_DEPTH:
        return
    m.depth += 1
    for node in body:
        if not m.live:
            break
        STATEMENTS[node.__class__](m, node)
    m.depth -= 1


# --- assignment ----------------------------------------------------------------------------------------------------


def assign(m: Machine, target: ast.expr, value: Value) -> None:
    """Bind a target: a name, ``self.x``, a tuple, or a place inside another object."""
    if isinstance(target, ast.Name):
        m.bind(target.id, value)
        m.table[target] = value
    elif isinstance(target, _DISPLAYS):
        _unpack(m, target.elts, value)
    elif isinstance(target, ast.Starred):
        assign(m, target.value, make(Kind.SEQUENCE, element=value, certainty=Certainty.PROVEN))
    elif isinstance(target, ast.Attribute):
        evaluate(m, target.value)
        m.table[target] = value
        store(m, target, value)
    elif isinstance(target, ast.Subscript):
        _assign_item(m, target, value)


def _assign_item(m: Machine, target: ast.Subscript, value: Value) -> None:
    container = evaluate(m, target.value)
    m.table[target] = evaluate(m, target)
    if container.kind is Kind.MAPPING or (container.kind is Kind.SEQUENCE and container.items is None):
        held = value if container.element is None else join(container.element, value)
        held_or_none = None if held == UNKNOWN else held
        if held_or_none != container.element:
            store(m, target.value, make(container.kind, element=held_or_none, certainty=container.certainty))


def _unpack(m: Machine, targets: list[ast.expr], value: Value) -> None:
    starred = next((i for i, t in enumerate(targets) if t.__class__ is ast.Starred), None)
    items = value.items
    if items is not None and starred is None and len(items) == len(targets):
        for target, held in zip(targets, items, strict=True):
            assign(m, target, held)
        return
    if value.kind is Kind.UNKNOWN and value.cls is not None:
        for at, target in enumerate(targets):
            assign(m, target, tensors.deferred(value, f"[{at}]"))
        return
    held = tensors.element(value)
    if value.kind is Kind.INSTANCE:
        held = objects.attribute(m, value, "logits") if value.device is not value.device.UNKNOWN else UNKNOWN
    for target in targets:
        assign(m, target, held)


@statement(ast.Assign)
def _assign(m: Machine, node: ast.Assign) -> None:
    value = evaluate(m, node.value)
    for target in node.targets:
        if value.kind is Kind.UNKNOWN and value.cls is None and target.__class__ is ast.Name and _given(node.value):
            assign(m, target, m.declared.get(target.id, value))
        else:
            assign(m, target, value)


def _given(node: ast.expr) -> bool:
    """Something a call or a container gives; what a setting holds is rather a number."""
    return node.__class__ in (ast.Call, ast.Subscript)


@statement(ast.AnnAssign)
def _annassign(m: Machine, node: ast.AnnAssign) -> None:
    declared = annotated(m, node.annotation)
    if node.value is None:
        if not isinstance(node.target, ast.Name) or declared == UNKNOWN:
            return
        value = declared
    else:
        value = evaluate(m, node.value)
        if value.kind is Kind.UNKNOWN or value.kind is Kind.NONE:
            value = declared if declared != UNKNOWN else value
        elif value.kind in (Kind.SEQUENCE, Kind.MAPPING) and value.element is None and not value.items:
            value = declared if declared.kind is value.kind else value
    assign(m, node.target, value)


@statement(ast.AugAssign)
def _augassign(m: Machine, node: ast.AugAssign) -> None:
    target = node.target
    before = evaluate(m, target)
    value = tensors.binary(m, before, evaluate(m, node.value), division=isinstance(node.op, ast.Div))
    if before.kind is Kind.TENSOR and value.kind is Kind.TENSOR:
        value = tensors.like(before, value.dtype, before.rank, False)
    if not isinstance(target, ast.Subscript):
        store(m, target, value)


@statement(ast.Expr)
def _expr(m: Machine, node: ast.Expr) -> None:
    if node.value.__class__ is not ast.Constant:
        evaluate(m, node.value)


@statement(ast.Return)
def _return(m: Machine, node: ast.Return) -> None:
    if node.value is not None:
        m.returned.append(evaluate(m, node.value))
    m.exits.append(m.env)
    m.live = False


@statement(ast.Raise)
def _raise(m: Machine, node: ast.Raise) -> None:
    if node.exc is not None and not m.symbolic:
        evaluate(m, node.exc)
    m.live = False


@statement(ast.Delete)
def _delete(m: Machine, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            m.env.pop(target.id, None)
        else:
            evaluate(m, target)


@statement(ast.Assert)
def _assert(m: Machine, node: ast.Assert) -> None:
    condition(m, node.test)
    if node.msg is not None and not m.symbolic:
        evaluate(m, node.msg)
    m.env = dict(m.env)
    assume(m, node.test, True)


@statement(ast.Pass, ast.Global, ast.Nonlocal)
def _pass(m: Machine, node: ast.stmt) -> None:
    return


@statement(ast.Import)
def _import(m: Machine, node: ast.Import) -> None:
    for alias in node.names:
        if alias.asname:
            m.env[alias.asname] = objects.external(alias.name)
        else:
            root = alias.name.partition(".")[0]
            m.env[root] = objects.external(root)


@statement(ast.ImportFrom)
def _import_from(m: Machine, node: ast.ImportFrom) -> None:
    for alias in node.names:
        name = alias.asname or alias.name
        if alias.name == "*":
            continue
        if node.level:
            package = m.names.module.split(".")
            parts = package[: len(package) - node.level]
            module = ".".join([*parts, node.module] if node.module else parts)
        else:
            module = node.module or ""
        m.env[name] = objects.resolve(m, f"{module}.{alias.name}")


@statement(ast.FunctionDef, ast.AsyncFunctionDef)
def _function(m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    for decorator in node.decorator_list:
        evaluate(m, decorator)
    for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
        evaluate(m, default)
    inside = "" if m.qualname in ("<module>", "") else m.qualname + "."
    m.bind(node.name, make(Kind.CALLABLE, cls=f"{m.names.module}.{inside}{node.name}", certainty=Certainty.PROVEN))


@statement(ast.ClassDef)
def _class(m: Machine, node: ast.ClassDef) -> None:
    for decorator in node.decorator_list:
        evaluate(m, decorator)
    for base in node.bases:
        evaluate(m, base)
    before, qualname, bound = m.env, m.qualname, m.bound
    inside = "" if qualname in ("<module>", "") else qualname + "."
    m.env = dict(before)
    m.bound = {}
    m.qualname = inside + node.name
    block(m, node.body)
    m.live = True
    m.class_attributes[m.qualname] = {name: functools.reduce(join, held) for name, held in m.bound.items()}
    m.env, m.qualname, m.bound = before, qualname, bound
    m.bind(node.name, make(Kind.CLASS, cls=f"{m.names.module}.{inside}{node.name}", certainty=Certainty.PROVEN))


# --- branches ------------------------------------------------------------------------------------------------------


def condition(m: Machine, test: ast.expr) -> None:
    """Evaluate a condition. A summary needs no values of it, only what it may bind or call."""
    if not (m.symbolic and _inert(test)):
        evaluate(m, test)


_LEAVES = frozenset({ast.Name, ast.Constant})


def _inert(test: ast.expr) -> bool:
    """Whether an expression neither calls nor binds anything."""
    kind = test.__class__
    if kind in _LEAVES:
        return True
    if isinstance(test, ast.Compare):
        return _inert(test.left) and all(_inert(part) for part in test.comparators)
    if isinstance(test, ast.Attribute):
        return _inert(test.value)
    if isinstance(test, ast.UnaryOp):
        return _inert(test.operand)
    if isinstance(test, ast.BoolOp):
        return all(_inert(part) for part in test.values)
    return False


def _static(test: ast.expr) -> bool | None:
    """Whether a condition is known before running: ``TYPE_CHECKING`` and constants."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Name) and test.id == "TYPE_CHECKING":
        return True
    return None


@statement(ast.If)
def _if(m: Machine, node: ast.If) -> None:
    """A chain of ``elif`` is walked in a loop: generated code has thousands of them."""
    ends: list[Env] = []
    current: ast.If = node
    while True:
        condition(m, current.test)
        known = _static(current.test)
        before = m.env
        if known is not False:
            m.env = dict(before)
            assume(m, current.test, True)
            block(m, current.body)
            if m.live:
                ends.append(m.env)
        m.live = True
        m.env = dict(before)
        assume(m, current.test, False)
        if known is True and not isinstance(current.test, ast.Name):
            m.live = False
            break
        orelse = current.orelse
        if len(orelse) == 1 and orelse[0].__class__ is ast.If:
            current = orelse[0]
            continue
        block(m, orelse)
        break
    if m.live:
        converted = _converted(node) if ends else None
        if converted is not None and converted in m.env and m.env[converted].kind is Kind.TENSOR:
            # the argument that had to be made a tensor is the rare one
            ends = [{**env, converted: m.env[converted]} for env in ends]
        ends.append(m.env)
    _meet(m, ends)
    if len(ends) > 1:
        _choose(m, node, ends)


def _choose(m: Machine, node: ast.If, ends: list[Env]) -> None:
    """A device that one branch puts on the host is nobody knows where."""
    for name in (*put_on_host(node.body), *put_on_host(node.orelse)):
        values = [env[name] for env in ends if name in env]
        host = next((v for v in values if v.device is Device.HOST), None)
        for other in values:
            if host is not None and (found := chosen(node.test, host, other)) is not None:
                m.env[name] = found


def _converted(node: ast.If) -> str | None:
    """``x`` of ``if not isinstance(x, torch.Tensor): x = torch.tensor(x)``."""
    test = node.test
    if node.orelse or not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
        return None
    call, only = test.operand, node.body[0]
    if len(node.body) != 1 or not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.Name):
        return None
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in ("is_tensor", "isinstance") or not isinstance(only, ast.Assign):
        return None
    target = only.targets[0]
    return target.id if isinstance(target, ast.Name) and target.id == call.args[0].id else None


def _meet(m: Machine, ends: list[Env]) -> None:
    if not ends:
        m.live = False
        return
    m.live = True
    result = ends[0]
    for env in ends[1:]:
        result = merge(result, env)
    m.env = result


@statement(ast.For, ast.AsyncFor)
def _for(m: Machine, node: ast.For | ast.AsyncFor) -> None:
    held = tensors.element(evaluate(m, node.iter))

    def head() -> None:
        assign(m, node.target, held)

    _loop(m, head, node.body, None)
    block(m, node.orelse)


@statement(ast.While)
def _while(m: Machine, node: ast.While) -> None:
    def head() -> None:
        evaluate(m, node.test)

    _loop(m, head, node.body, node.test)
    block(m, node.orelse)


def _loop(m: Machine, head: Callable[[], None], body: list[ast.stmt], test: ast.expr | None) -> None:
    breaks, continues = m.breaks, m.continues
    m.breaks = []
    entry = m.env
    for _ in range(MAX_ROUNDS):
        m.continues = []
        m.env = dict(entry)
        m.live = True
        head()
        if test is not None:
            assume(m, test, True)
        block(m, body)
        ends = [*m.continues, m.env] if m.live else m.continues
        following = entry
        for env in ends:
            following = merge(following, env)
        if all(following[name] is value or following[name] == value for name, value in entry.items()):
            entry = following
            break
        entry = following
    endless = test is not None and isinstance(test, ast.Constant) and bool(test.value)
    exits = list(m.breaks)
    if not endless:
        m.env = entry
        m.live = True
        exits.append(entry)
    m.breaks, m.continues = breaks, continues
    _meet(m, exits)
    if m.live and test is not None and not exits[:-1]:
        m.env = dict(m.env)
        assume(m, test, False)


@statement(ast.Break)
def _break(m: Machine, node: ast.Break) -> None:
    m.breaks.append(m.env)
    m.live = False


@statement(ast.Continue)
def _continue(m: Machine, node: ast.Continue) -> None:
    m.continues.append(m.env)
    m.live = False


@statement(ast.With, ast.AsyncWith)
def _with(m: Machine, node: ast.With | ast.AsyncWith) -> None:
    default = m.default_device
    for part in node.items:
        value = evaluate(m, part.context_expr)
        if value.kind is Kind.DEVICE:
            m.default_device = value
        if part.optional_vars is not None:
            assign(m, part.optional_vars, value if value.kind is not Kind.DEVICE else UNKNOWN)
    block(m, node.body)
    m.default_device = default


def _try(m: Machine, node: Any) -> None:
    before = m.env
    m.env = dict(before)
    block(m, node.body)
    if m.live:
        block(m, node.orelse)
    ends = [m.env] if m.live else []
    thrown = merge(before, m.env)
    for handler in node.handlers:
        m.live = True
        m.env = dict(thrown)
        if handler.type is not None:
            evaluate(m, handler.type)
        if handler.name:
            m.env[handler.name] = UNKNOWN
        block(m, handler.body)
        if m.live:
            ends.append(m.env)
    _meet(m, ends)
    if node.finalbody:
        live = m.live
        if not live:
            m.env = thrown
        m.live = True
        block(m, node.finalbody)
        m.live = m.live and live


STATEMENTS[ast.Try] = _try
if hasattr(ast, "TryStar"):
    STATEMENTS[ast.TryStar] = _try


@statement(ast.Match)
def _match(m: Machine, node: ast.Match) -> None:
    subject = evaluate(m, node.subject)
    before = m.env
    ends: list[Env] = []
    for case in node.cases:
        m.live = True
        m.env = dict(before)
        for part in ast.walk(case.pattern):
            if isinstance(part, ast.MatchAs | ast.MatchStar) and part.name:
                m.bind(part.name, subject if part is case.pattern else UNKNOWN)
            elif isinstance(part, ast.MatchValue):
                evaluate(m, part.value)
        if case.guard is not None:
            evaluate(m, case.guard)
        block(m, case.body)
        if m.live:
            ends.append(m.env)
    ends.append(before)
    _meet(m, ends)


if hasattr(ast, "TypeAlias"):
    STATEMENTS[ast.TypeAlias] = _pass
