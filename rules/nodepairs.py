"""The correspondence of ``ast`` and LibCST, kind by kind: which kinds stand for each other and how their parts pair up.

Only :mod:`awp_lint.rules.nodemap` imports this, and only when a tree is needed, since it imports LibCST.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import libcst as cst

from awp_lint.rules.nodemap import Mismatch

Parts = Sequence[ast.AST | None]
Others = Sequence[cst.CSTNode | None]
Both = tuple[Parts, Others]
Entry = tuple[tuple[type, ...], Callable[..., Both]]


def _leaf(node: ast.AST, other: cst.CSTNode) -> Both:
    return [], []


def _statements(body: cst.BaseSuite) -> list[cst.CSTNode | None]:
    return _flat(body.body if isinstance(body, cst.IndentedBlock) else [body])


def _flat(statements: Sequence[cst.CSTNode]) -> list[cst.CSTNode | None]:
    flat: list[cst.CSTNode | None] = []
    for statement in statements:
        if isinstance(statement, cst.SimpleStatementLine | cst.SimpleStatementSuite):
            flat.extend(statement.body)
        else:
            flat.append(statement)
    return flat


def _parameters(ours: ast.arguments, theirs: cst.Parameters) -> Both:
    """Annotations and defaults, parameter by parameter."""
    left: list[ast.AST | None] = []
    plain = [*ours.posonlyargs, *ours.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(ours.defaults)) + list(ours.defaults)
    for arg, default in zip(plain, defaults, strict=True):
        left += [arg.annotation, default]
    if ours.vararg:
        left += [ours.vararg.annotation, None]
    for arg, default in zip(ours.kwonlyargs, ours.kw_defaults, strict=True):
        left += [arg.annotation, default]
    if ours.kwarg:
        left += [ours.kwarg.annotation, None]
    right: list[cst.CSTNode | None] = []
    params = [*theirs.posonly_params, *theirs.params]
    if isinstance(theirs.star_arg, cst.Param):
        params.append(theirs.star_arg)
    params += theirs.kwonly_params
    if theirs.star_kwarg:
        params.append(theirs.star_kwarg)
    for param in params:
        right += [param.annotation.annotation if param.annotation else None, param.default]
    return left, right


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, other: cst.FunctionDef) -> Both:
    left, right = _parameters(node.args, other.params)
    return (
        [*node.decorator_list, *left, node.returns, *node.body],
        [
            *(d.decorator for d in other.decorators),
            *right,
            other.returns.annotation if other.returns else None,
            *_statements(other.body),
        ],
    )


def _class(node: ast.ClassDef, other: cst.ClassDef) -> Both:
    return (
        [*node.decorator_list, *node.bases, *(k.value for k in node.keywords), *node.body],
        [
            *(d.decorator for d in other.decorators),
            *(_arg(a) for a in other.bases),
            *(a.value for a in other.keywords),
            *_statements(other.body),
        ],
    )


def _arg(arg: cst.Arg) -> cst.CSTNode:
    """A starred argument pairs as the argument itself: LibCST has no node for the star alone."""
    return arg if arg.star == "*" else arg.value


def _call(node: ast.Call, other: cst.Call) -> Both:
    ours: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
    ours.sort(key=lambda part: (part.lineno, part.col_offset))
    return (
        [node.func, *(p.value if isinstance(p, ast.keyword) else p for p in ours)],
        [other.func, *(_arg(a) for a in other.args)],
    )


def _starred(node: ast.Starred, other: cst.StarredElement | cst.Arg) -> Both:
    return [node.value], [other.value]


def _element(element: cst.BaseElement) -> cst.CSTNode:
    return element if isinstance(element, cst.StarredElement) else element.value


def _sequence(node: ast.Tuple | ast.List | ast.Set, other: cst.Tuple | cst.List | cst.Set) -> Both:
    return node.elts, [_element(e) for e in other.elements]


def _dict(node: ast.Dict, other: cst.Dict) -> Both:
    left: list[ast.AST | None] = []
    for key, value in zip(node.keys, node.values, strict=True):
        left += [key, value]
    right: list[cst.CSTNode | None] = []
    for element in other.elements:
        right += [element.key if isinstance(element, cst.DictElement) else None, element.value]
    return left, right


def _flatten(other: cst.BaseExpression, operator: type) -> list[cst.CSTNode | None]:
    if isinstance(other, cst.BooleanOperation) and isinstance(other.operator, operator):
        left = other.left if other.left.lpar else None
        right = other.right if other.right.lpar else None
        return [
            *([left] if left is not None else _flatten(other.left, operator)),
            *([right] if right is not None else _flatten(other.right, operator)),
        ]
    return [other]


def _boolean(node: ast.BoolOp, other: cst.BooleanOperation) -> Both:
    return node.values, _flatten(other, cst.And if isinstance(node.op, ast.And) else cst.Or)


def _compare(node: ast.Compare, other: cst.Comparison) -> Both:
    return [node.left, *node.comparators], [other.left, *(t.comparator for t in other.comparisons)]


def _slice_part(part: cst.BaseSlice) -> cst.CSTNode:
    if isinstance(part, cst.Index):
        return part if part.star else part.value
    return part


def _subscript(node: ast.Subscript, other: cst.Subscript) -> Both:
    parts = other.slice
    several = len(parts) > 1 or not isinstance(parts[0].comma, cst.MaybeSentinel)
    if isinstance(node.slice, ast.Tuple) and (several or isinstance(parts[0].slice, cst.Slice)):
        return [node.value, *node.slice.elts], [other.value, *(_slice_part(p.slice) for p in parts)]
    if several:
        return [node.value, None], [other.value]  # raises as a mismatch
    return [node.value, node.slice], [other.value, _slice_part(parts[0].slice)]


def _slice(node: ast.Slice, other: cst.Slice) -> Both:
    return [node.lower, node.upper, node.step], [other.lower, other.upper, other.step]


def _comprehensions(generators: Sequence[ast.comprehension], first: cst.CompFor) -> Both:
    left: list[ast.AST | None] = []
    right: list[cst.CSTNode | None] = []
    for generator in generators:
        left += [generator.target, generator.iter, *generator.ifs]
    current: cst.CompFor | None = first
    while current is not None:
        right += [current.target, current.iter, *(i.test for i in current.ifs)]
        current = current.inner_for_in
    return left, right


def _comprehension(node: ast.ListComp | ast.SetComp | ast.GeneratorExp, other: cst.BaseSimpleComp) -> Both:
    left, right = _comprehensions(node.generators, other.for_in)
    return [node.elt, *left], [other.elt, *right]


def _dict_comprehension(node: ast.DictComp, other: cst.DictComp) -> Both:
    left, right = _comprehensions(node.generators, other.for_in)
    return [node.key, node.value, *left], [other.key, other.value, *right]


def _lambda(node: ast.Lambda, other: cst.Lambda) -> Both:
    left, right = _parameters(node.args, other.params)
    return [*left, node.body], [*right, other.body]


def _holes(parts: Iterable[cst.CSTNode]) -> list[cst.CSTNode | None]:
    """The expressions inside f-strings, in order; format specifications have their own."""
    found: list[cst.CSTNode | None] = []
    for part in parts:
        if isinstance(part, cst.FormattedStringExpression):
            found.append(part.expression)
            found += _holes(part.format_spec or [])
        elif isinstance(part, cst.FormattedString):
            found += _holes(part.parts)
        elif isinstance(part, cst.ConcatenatedString):
            found += _holes([part.left, part.right])
    return found


def _values(node: ast.JoinedStr) -> list[ast.AST | None]:
    found: list[ast.AST | None] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            found.append(part.value)
            if isinstance(part.format_spec, ast.JoinedStr):
                found += _values(part.format_spec)
    return found


def _formatted(node: ast.JoinedStr, other: cst.CSTNode) -> Both:
    return _values(node), _holes([other])


def _if(node: ast.If, other: cst.If) -> Both:
    left: list[ast.AST | None] = [node.test, *node.body]
    right: list[cst.CSTNode | None] = [other.test, *_statements(other.body)]
    if isinstance(other.orelse, cst.If):
        right.append(other.orelse)
    elif isinstance(other.orelse, cst.Else):
        right += _statements(other.orelse.body)
    return [*left, *node.orelse], right


def _else(other: cst.Else | None) -> list[cst.CSTNode | None]:
    return _statements(other.body) if other else []


def _while(node: ast.While, other: cst.While) -> Both:
    return [node.test, *node.body, *node.orelse], [other.test, *_statements(other.body), *_else(other.orelse)]


def _for(node: ast.For | ast.AsyncFor, other: cst.For) -> Both:
    return (
        [node.target, node.iter, *node.body, *node.orelse],
        [other.target, other.iter, *_statements(other.body), *_else(other.orelse)],
    )


def _with(node: ast.With | ast.AsyncWith, other: cst.With) -> Both:
    left: list[ast.AST | None] = []
    for item in node.items:
        left += [item.context_expr, item.optional_vars]
    right: list[cst.CSTNode | None] = []
    for entry in other.items:
        right += [entry.item, entry.asname.name if entry.asname else None]
    return [*left, *node.body], [*right, *_statements(other.body)]


def _try(node: Any, other: cst.Try | cst.TryStar) -> Both:
    left: list[ast.AST | None] = [*node.body]
    right: list[cst.CSTNode | None] = _statements(other.body)
    for handler in node.handlers:
        left += [handler.type, *handler.body]
    for clause in other.handlers:
        right += [clause.type, *_statements(clause.body)]
    right += _else(other.orelse)
    right += _statements(other.finalbody.body) if other.finalbody else []
    return [*left, *node.orelse, *node.finalbody], right


def _match(node: ast.Match, other: cst.Match) -> Both:
    left: list[ast.AST | None] = [node.subject]
    right: list[cst.CSTNode | None] = [other.subject]
    for ours, theirs in zip(node.cases, other.cases, strict=True):
        left += [ours.guard, *ours.body]
        right += [theirs.guard, *_statements(theirs.body)]
    return left, right


def _assign(node: ast.Assign, other: cst.Assign) -> Both:
    return [*node.targets, node.value], [*(t.target for t in other.targets), other.value]


def _annotated(node: ast.AnnAssign, other: cst.AnnAssign) -> Both:
    return [node.target, node.annotation, node.value], [other.target, other.annotation.annotation, other.value]


def _delete(node: ast.Delete, other: cst.Del) -> Both:
    if len(node.targets) > 1 and isinstance(other.target, cst.Tuple):
        return node.targets, [_element(e) for e in other.target.elements]
    return node.targets, [other.target]


def _raise(node: ast.Raise, other: cst.Raise) -> Both:
    return [node.exc, node.cause], [other.exc, other.cause.item if other.cause else None]


def _yield_from(node: ast.YieldFrom, other: cst.Yield) -> Both:
    return [node.value], [other.value.item if isinstance(other.value, cst.From) else None]


def _fields(*names: str | tuple[str, str]) -> Callable[..., Both]:
    """Parts that bear the same name in both trees, or a pair of names."""
    pairs = [(name, name) if isinstance(name, str) else name for name in names]

    def parts(node: ast.AST, other: cst.CSTNode) -> Both:
        return [getattr(node, a) for a, _ in pairs], [getattr(other, b) for _, b in pairs]

    return parts


def pair(unit: Sequence[ast.stmt], body: Sequence[cst.CSTNode]) -> dict[int, cst.CSTNode]:
    """The LibCST node of every ``ast`` node of the statements, by ``id``. Raises :class:`Mismatch`."""
    flat = _flat(body)
    if len(unit) != len(flat):
        raise Mismatch(f"{len(unit)} statements against {len(flat)}")
    pairs: dict[int, cst.CSTNode] = {}
    stack: list[tuple[ast.AST, cst.CSTNode | None]] = list(zip(unit, flat, strict=True))
    while stack:
        node, other = stack.pop()
        entry = TABLE.get(type(node))
        if entry is None:
            continue  # a kind that is not looked into
        kinds, parts = entry
        if other is None or not isinstance(other, kinds):
            raise Mismatch(f"{type(node).__name__} against {type(other).__name__}")
        pairs[id(node)] = other
        ours, theirs = parts(node, other)
        if len(ours) != len(theirs):
            raise Mismatch(f"{type(node).__name__}: {len(ours)} parts against {len(theirs)}")
        for a, b in zip(ours, theirs, strict=True):
            if (a is None) != (b is None):
                raise Mismatch(f"{type(node).__name__}: a part is missing on one side")
            if a is not None:
                stack.append((a, b))
    return pairs


def _build() -> dict[type[ast.AST], Entry]:
    """The table of all kinds that are looked into; imports, patterns and the like are passed over."""
    strings = (cst.SimpleString, cst.ConcatenatedString)
    table: dict[type[ast.AST], Entry] = {
        ast.FunctionDef: ((cst.FunctionDef,), _function),
        ast.AsyncFunctionDef: ((cst.FunctionDef,), _function),
        ast.ClassDef: ((cst.ClassDef,), _class),
        ast.If: ((cst.If,), _if),
        ast.While: ((cst.While,), _while),
        ast.For: ((cst.For,), _for),
        ast.AsyncFor: ((cst.For,), _for),
        ast.With: ((cst.With,), _with),
        ast.AsyncWith: ((cst.With,), _with),
        ast.Try: ((cst.Try,), _try),
        ast.Match: ((cst.Match,), _match),
        ast.Assign: ((cst.Assign,), _assign),
        ast.AugAssign: ((cst.AugAssign,), _fields("target", "value")),
        ast.AnnAssign: ((cst.AnnAssign,), _annotated),
        ast.Return: ((cst.Return,), _fields("value")),
        ast.Expr: ((cst.Expr,), _fields("value")),
        ast.Delete: ((cst.Del,), _delete),
        ast.Raise: ((cst.Raise,), _raise),
        ast.Assert: ((cst.Assert,), _fields("test", "msg")),
        ast.Pass: ((cst.Pass,), _leaf),
        ast.Break: ((cst.Break,), _leaf),
        ast.Continue: ((cst.Continue,), _leaf),
        ast.Name: ((cst.Name,), _leaf),
        ast.Attribute: ((cst.Attribute,), _fields("value")),
        ast.Subscript: ((cst.Subscript,), _subscript),
        ast.Slice: ((cst.Slice,), _slice),
        ast.Call: ((cst.Call,), _call),
        ast.Starred: ((cst.StarredElement, cst.Arg, cst.Index), _starred),
        ast.BinOp: ((cst.BinaryOperation,), _fields("left", "right")),
        ast.UnaryOp: ((cst.UnaryOperation,), _fields(("operand", "expression"))),
        ast.BoolOp: ((cst.BooleanOperation,), _boolean),
        ast.Compare: ((cst.Comparison,), _compare),
        ast.IfExp: ((cst.IfExp,), _fields("test", "body", "orelse")),
        ast.Lambda: ((cst.Lambda,), _lambda),
        ast.Tuple: ((cst.Tuple,), _sequence),
        ast.List: ((cst.List,), _sequence),
        ast.Set: ((cst.Set,), _sequence),
        ast.Dict: ((cst.Dict,), _dict),
        ast.ListComp: ((cst.ListComp,), _comprehension),
        ast.SetComp: ((cst.SetComp,), _comprehension),
        ast.GeneratorExp: ((cst.GeneratorExp,), _comprehension),
        ast.DictComp: ((cst.DictComp,), _dict_comprehension),
        ast.Constant: ((cst.BaseNumber, cst.Name, cst.Ellipsis, *strings), _leaf),
        ast.JoinedStr: ((cst.FormattedString, cst.ConcatenatedString), _formatted),
        ast.NamedExpr: ((cst.NamedExpr,), _fields("target", "value")),
        ast.Await: ((cst.Await,), _fields(("value", "expression"))),
        ast.Yield: ((cst.Yield,), _fields("value")),
        ast.YieldFrom: ((cst.Yield,), _yield_from),
    }
    if hasattr(ast, "TryStar"):
        table[ast.TryStar] = ((cst.TryStar,), _try)
    return table


TABLE = _build()
