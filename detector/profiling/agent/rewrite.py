"""Marks compiled into a module's code (Python without ``sys.monitoring``).

The source is parsed, calls of two helpers are put around what is marked, and the result is compiled under the same file
name with the same line numbers. Everything else means what it meant: no name is added to any namespace but builtins, no
frame stands between the program's functions, no ``try`` is added (it would change how Dynamo breaks graphs), and values
pass through unchanged. ``__awp_open__(mark)`` returns something false, ``__awp_close__(mark, value)`` the value.

A marked region that an exception leaves stays open in the record; the reader drops it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import CodeType
from typing import Any

from awp_lint.detector.profiling.agent.plan import AgentMark

OPEN, CLOSE, TICK, MAIN = "__awp_open__", "__awp_close__", "__awp_tick__", "__awp_main__"

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_PIECES = (ast.Starred, ast.Slice, ast.FormattedValue, ast.JoinedStr)  # expressions that stand only inside others
_Span = tuple[int, int, int, int]


def rewrite(source: bytes, filename: str, marks: Sequence[AgentMark], main: bool = False) -> tuple[CodeType, set[int]]:
    """The code of a module with its marks, and the numbers of the marks that were placed. Raises ``SyntaxError``.

    ``main``: call ``__awp_main__(globals())`` first, for a script that the interpreter runs through us.
    """
    tree = ast.parse(source, filename)
    writer = _Writer(marks)
    writer.module(tree)
    if main:
        at = _head(tree.body)
        where = tree.body[at] if at < len(tree.body) else (tree.body[-1] if tree.body else None)
        line = getattr(where, "lineno", 1)
        hello = ast.Expr(_call(MAIN, ast.Call(ast.Name("globals", ast.Load()), [], [])))
        for node in ast.walk(hello):
            if isinstance(node, (ast.expr, ast.stmt)):
                node.lineno = node.end_lineno = line
                node.col_offset = node.end_col_offset = 0
        tree.body.insert(at, hello)
    return compile(tree, filename, "exec", dont_inherit=True), writer.placed


def _head(body: list[ast.stmt]) -> int:
    """How many statements must stay first: the docstring and ``from __future__`` imports."""
    at = 0
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        at = 1 if isinstance(body[0].value.value, str) else 0
    while at < len(body):
        statement = body[at]
        if not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
        at += 1
    return at


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _number(mark: AgentMark) -> ast.expr:
    return ast.Constant(mark.number)


def _placed(made: Any, like: ast.AST) -> Any:
    """``made`` with the position of ``like`` on every node that has none."""
    for node in ast.walk(made):
        if isinstance(node, (ast.expr, ast.stmt)) and not hasattr(node, "lineno"):
            ast.copy_location(node, like)
    return made


def _span(node: ast.AST) -> _Span | None:
    end = getattr(node, "end_lineno", None)
    if end is None:
        return None
    return (node.lineno, node.col_offset, end, node.end_col_offset)  # type: ignore[attr-defined]


class _Writer(ast.NodeTransformer):
    """Puts the helpers in. ``self.regions`` are the marks around the node being visited, outermost first."""

    def __init__(self, marks: Sequence[AgentMark]) -> None:
        self.calls: dict[_Span, list[AgentMark]] = {}
        self.spans: dict[_Span, list[AgentMark]] = {}
        self.functions: dict[tuple[str, int], list[AgentMark]] = {}
        for mark in marks:
            span = (mark.line, mark.column, mark.end_line, mark.end_column)
            if mark.kind == "function":
                self.functions.setdefault((mark.function, mark.function_line), []).append(mark)
            else:
                (self.calls if mark.kind == "call" else self.spans).setdefault(span, []).append(mark)
        self.regions: list[AgentMark] = []
        self.loops: list[int] = []  # for each loop around: how many regions were open when it began
        self.scope: list[str] = []
        self.placed: set[int] = set()

    def module(self, tree: ast.Module) -> None:
        """Rewrite a module in place."""
        tree.body = self._block(tree.body)

    # -- statements --

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        ending: list[tuple[ast.stmt, AgentMark]] = []
        for index, statement in enumerate(body):
            for last, mark in self._ranges(body, index):
                ending.insert(0, (last, mark))
                self.regions.append(mark)
                done.append(self._open(mark, statement))
            done.extend(self._statement(statement))
            for pair in [pair for pair in ending if pair[0] is statement]:
                ending.remove(pair)
                self.regions.remove(pair[1])
                done.append(self._close(pair[1], statement))
        return done

    def _ranges(self, body: list[ast.stmt], index: int) -> list[tuple[ast.stmt, AgentMark]]:
        """Marks that begin with ``body[index]`` and end with a later statement of the block, the longest first."""
        found = []
        for last in reversed(body[index + 1 :]):
            begin, end = _span(body[index]), _span(last)
            if begin is None or end is None:
                continue
            for mark in self.spans.get((*begin[:2], *end[2:]), []):
                if mark.number not in self.placed:
                    self.placed.add(mark.number)
                    found.append((last, mark))
        return found

    def _statement(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return [statement]  # a docstring, which must stay first
        marks = self._take(self.spans, statement)
        self.regions.extend(marks)
        new = self.visit(statement)
        del self.regions[len(self.regions) - len(marks) :]
        if marks and isinstance(new, _LOOPS):
            ticks = [mark for mark in marks if mark.unit]
            new.body[:0] = [_placed(ast.Expr(_call(TICK, _number(mark))), new.body[0]) for mark in ticks]
        opening = [self._open(mark, statement) for mark in marks]
        if isinstance(new, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return [*opening, *self._leaving(new, marks)]
        return [*opening, new, *(self._close(mark, statement) for mark in reversed(marks))]

    def _leaving(self, new: ast.stmt, own: list[AgentMark]) -> list[ast.stmt]:
        """A statement that leaves regions closes them first: a return after its value is there."""
        if isinstance(new, ast.Raise):
            return [new]
        if isinstance(new, ast.Return):
            value = new.value
            if value is None:  # in an async generator it must stay so
                return [*(self._close(mark, new) for mark in reversed([*self.regions, *own])), new]
            for mark in reversed([*self.regions, *own]):
                value = _placed(_call(CLOSE, _number(mark), value), new)
            new.value = value
            return [new]
        kept = self.loops[-1] if self.loops else 0
        left = [*self.regions[kept:], *own]
        return [*(self._close(mark, new) for mark in reversed(left)), new]

    def _open(self, mark: AgentMark, like: ast.AST) -> ast.stmt:
        made: ast.stmt = _placed(ast.Expr(_call(OPEN, _number(mark))), like)
        return made

    def _close(self, mark: AgentMark, like: ast.AST) -> ast.stmt:
        made: ast.stmt = _placed(ast.Expr(_call(CLOSE, _number(mark), ast.Constant(None))), like)
        return made

    def _take(self, table: dict[_Span, list[AgentMark]], node: ast.AST) -> list[AgentMark]:
        """The marks on exactly this node. A statement that is one expression has its span too, and comes first."""
        span = _span(node)
        marks = table.get(span, []) if span is not None else []
        fresh = [mark for mark in marks if mark.number not in self.placed]
        self.placed.update(mark.number for mark in fresh)
        return fresh

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visit children; statement lists may grow."""
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                if value and isinstance(value[0], ast.stmt):
                    setattr(node, name, self._block(value))
                else:
                    setattr(node, name, [self.visit(item) if isinstance(item, ast.AST) else item for item in value])
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node

    def visit(self, node: ast.AST) -> Any:
        """One node, with the marks that lie exactly on it."""
        if isinstance(node, _FUNCTIONS):
            return self._function(node)
        if isinstance(node, ast.ClassDef):
            return self._class(node)
        if isinstance(node, _LOOPS):
            return self._loop(node)
        if isinstance(node, (ast.If, ast.IfExp, ast.Assert)):
            self._test(node, "test")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._test(node, "operand")
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                self._truth(test)
        if not isinstance(node, ast.expr) or isinstance(node, _PIECES):
            return self.generic_visit(node)
        if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
            return self.generic_visit(node)
        spanned = self._take(self.spans, node)
        called = self._take(self.calls, node) if isinstance(node, ast.Call) else []
        truth = bool(spanned) and getattr(node, "_awp_truth", False)
        self.regions.extend(spanned)
        new: Any = self.generic_visit(node)
        del self.regions[len(self.regions) - len(spanned) :]
        if isinstance(new, (ast.Await, ast.Yield, ast.YieldFrom)):
            new = self._suspension(new)
        for mark in called:
            new = self._called(mark, new)
        if truth:
            new = _placed(ast.IfExp(new, ast.Constant(True), ast.Constant(False)), node)
        for mark in spanned:
            inner = ast.BoolOp(ast.Or(), [_call(OPEN, _number(mark)), new])
            new = _placed(_call(CLOSE, _number(mark), inner), node)
        return new

    def _truth(self, test: ast.expr) -> None:
        """Remember that only the truth of ``test`` matters, so that taking it may be a part of the mark."""
        if isinstance(test, ast.BoolOp):
            for value in test.values:
                self._truth(value)
        else:
            test._awp_truth = True  # type: ignore[attr-defined]

    def _test(self, node: Any, name: str) -> None:
        self._truth(getattr(node, name))

    def _loop(self, node: Any) -> Any:
        if isinstance(node, ast.While):
            self._truth(node.test)
            node.test = self.visit(node.test)
        else:
            node.target = self.visit(node.target)
            node.iter = self.visit(node.iter)
        self.loops.append(len(self.regions))
        node.body = self._block(node.body)
        self.loops.pop()
        node.orelse = self._block(node.orelse)
        return node

    def _class(self, node: ast.ClassDef) -> ast.ClassDef:
        node.decorator_list = [self.visit(item) for item in node.decorator_list]
        node.bases = [self.visit(item) for item in node.bases]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        saved = self.regions, self.loops
        self.regions, self.loops = [], []
        self.scope.append(node.name)
        node.body = self._block(node.body)
        self.scope.pop()
        self.regions, self.loops = saved
        return node

    def _function(self, node: Any) -> Any:
        for item in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            self.generic_visit(item)
        saved = self.regions, self.loops
        self.regions, self.loops = [], []
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
        else:
            node.decorator_list = [self.visit(item) for item in node.decorator_list]
            self.scope.append(node.name)
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            marks = self.functions.get((".".join(self.scope), first), [])
            self.placed.update(mark.number for mark in marks)
            self.regions = list(marks)
            node.body = self._body(node.body, marks)
            self.scope.pop()
        self.regions, self.loops = saved
        return node

    def _body(self, body: list[ast.stmt], marks: list[AgentMark]) -> list[ast.stmt]:
        new = self._block(body)
        if not marks:
            return new
        at = _head(new)
        like = new[at] if at < len(new) else new[-1]
        ticks = [_placed(ast.Expr(_call(TICK, _number(mark))), like) for mark in marks if mark.unit]
        opening = [self._open(mark, like) for mark in marks]
        closing = [self._close(mark, new[-1]) for mark in reversed(marks)]
        return [*new[:at], *ticks, *opening, *new[at:], *closing]

    # -- expressions --

    def _suspension(self, node: Any) -> Any:
        """``await`` and ``yield``: the regions around close while others run and open when this frame goes on."""
        new = node
        for mark in reversed(self.regions):
            node.value = _placed(_call(CLOSE, _number(mark), node.value or ast.Constant(None)), node)
        for mark in self.regions:
            new = _placed(self._after(mark, new), node)
        return new

    def _after(self, mark: AgentMark, value: ast.expr) -> ast.expr:
        """``value``, then the opening: ``(value, open())[0]``."""
        pair = ast.Tuple([value, _call(OPEN, _number(mark))], ast.Load())
        return ast.Subscript(pair, _index(0), ast.Load())

    def _called(self, mark: AgentMark, call: ast.Call) -> ast.expr:
        """Open after the last argument is evaluated, close when the call returns."""
        if call.keywords:
            last = call.keywords[-1]
            last.value = _placed(self._after(mark, last.value), last.value)
        elif call.args:
            argument = call.args[-1]
            if isinstance(argument, ast.Starred):
                argument.value = _placed(self._after(mark, argument.value), argument.value)
            else:
                call.args[-1] = _placed(self._after(mark, argument), argument)
        else:
            call.func = _placed(self._after(mark, call.func), call.func)
        made: ast.expr = _placed(_call(CLOSE, _number(mark), call), call)
        return made


def _index(number: int) -> Any:
    return ast.Constant(number)
