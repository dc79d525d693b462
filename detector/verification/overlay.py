"""What a patch touches, and so how it can be proven: which functions it edits, or that modules must be loaded anew.

Routes: *none* (nothing but bodies of functions changes: their code is exchanged in the running program) and *process*
(anything else: whole processes run one version or the other).
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from awp_lint.detector.finding import Finding, Mark
from awp_lint.detector.profiling.session import PlannedMark

# Run once an object: live ones would keep what the original made of them.
_BUILDERS = frozenset(("__init__", "__new__", "__post_init__", "__init_subclass__", "__set_name__", "__setstate__"))


@dataclass(frozen=True, slots=True)
class EditedFunction:
    """An edited function: its path from the module (classes, then the function), and which of several of that name.

    ``ordinal`` counts definitions of the same name in the same block, from 0. ``lines``: those of the patched text that
    are new, 1-based.
    """

    names: tuple[str, ...]
    ordinal: int
    lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundImport:
    """A name that a new import of the patch binds in the module."""

    module: str
    name: str | None
    bound: str


@dataclass(frozen=True, slots=True)
class Touched:
    """What a patch of one file touches. ``reason``: why its code cannot be exchanged live, "" where it can."""

    functions: tuple[EditedFunction, ...] = ()
    imports: tuple[BoundImport, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FileOverlay:
    """One file of a patch, both texts byte for byte. ``path`` is absolute and real."""

    path: str
    module: str
    before: bytes
    after: bytes
    touched: Touched
    created: bool = False  # there is no such file yet


@dataclass(frozen=True, slots=True)
class PatchTrial:
    """One thing to be proven: a finding's patch, or several together."""

    name: str
    findings: tuple[Finding, ...]
    files: tuple[FileOverlay, ...]

    @property
    def reason(self) -> str:
        """Why the code cannot be exchanged in a running program; "" where it can."""
        return next((file.touched.reason for file in self.files if file.touched.reason), "")

    @property
    def route(self) -> str:
        """ "none" or "process"."""
        return "process" if self.reason else "none"


def touched(before: str, after: str) -> Touched:
    """Compare two texts of a module. Raises :class:`SyntaxError` where one is none."""
    old, new = ast.parse(before), ast.parse(after)
    found = _Comparison(_new_lines(before, after))
    found.block(old.body, new.body, ())
    return Touched(tuple(found.functions), tuple(found.imports), found.reason)


class _Comparison:
    def __init__(self, lines: frozenset[int]) -> None:
        self.lines = lines
        self.functions: list[EditedFunction] = []
        self.imports: list[BoundImport] = []
        self.reason = ""

    def stop(self, reason: str) -> None:
        self.reason = self.reason or reason

    def block(self, old: Sequence[ast.stmt], new: Sequence[ast.stmt], names: tuple[str, ...]) -> None:
        """The statements of a module or of a class."""
        added = [s for s in new if isinstance(s, ast.Import | ast.ImportFrom) and not _among(s, old)]
        if names and added:
            self.stop("it changes a class's own statements")
        for statement in added:
            self._import(statement)
        rest = [s for s in new if s not in added]
        if len(rest) != len(old):
            self.stop("it adds or removes statements at the module's top level or in a class")
            return
        counts: dict[str, int] = {}
        for one, other in zip(old, rest, strict=True):
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and type(one) is type(other):
                assert isinstance(other, ast.FunctionDef | ast.AsyncFunctionDef)
                number = counts.get(one.name, 0)
                counts[one.name] = number + 1
                self._function(one, other, names, number)
            elif isinstance(one, ast.ClassDef) and isinstance(other, ast.ClassDef):
                if _head(one) != _head(other):
                    self.stop(f"it changes the head of class {one.name}")
                self.block(one.body, other.body, (*names, one.name))
            elif ast.dump(one) != ast.dump(other):
                self.stop("it changes statements that run when the module is loaded")

    def _function(
        self,
        one: ast.FunctionDef | ast.AsyncFunctionDef,
        other: ast.FunctionDef | ast.AsyncFunctionDef,
        names: tuple[str, ...],
        number: int,
    ) -> None:
        if ast.dump(one) == ast.dump(other):
            return
        if _head(one) != _head(other):
            self.stop(f"it changes the signature or the decorators of {one.name}")
        elif one.name in _BUILDERS:
            self.stop(f"{one.name} runs once an object: live objects would keep what the original made")
        elif isinstance(one, ast.AsyncFunctionDef) or _suspends(one) or _suspends(other):
            self.stop(f"{one.name} is a generator or a coroutine, which keeps the code that it began with")
        own = range(other.lineno, (other.end_lineno or other.lineno) + 1)
        lines = tuple(sorted(_statement_lines(other) & self.lines & set(own)))
        self.functions.append(EditedFunction((*names, one.name), number, lines))

    def _import(self, statement: ast.Import | ast.ImportFrom) -> None:
        if isinstance(statement, ast.ImportFrom):
            if statement.level or statement.module is None or statement.module == "__future__":
                self.stop("it adds a relative import")
                return
            for name in statement.names:
                self.imports.append(BoundImport(statement.module, name.name, name.asname or name.name))
        else:
            for name in statement.names:
                self.imports.append(BoundImport(name.name, None, name.asname or name.name.partition(".")[0]))


def _among(statement: ast.stmt, others: Sequence[ast.stmt]) -> bool:
    text = ast.dump(statement)
    return any(ast.dump(other) == text for other in others if type(other) is type(statement))


def _head(node: ast.stmt) -> str:
    """A definition without its body."""
    parts = [f"{name}={_dump(value)}" for name, value in ast.iter_fields(node) if name != "body"]
    return " ".join(parts)


def _dump(value: object) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_dump(item) for item in value) + "]"
    return ast.dump(value) if isinstance(value, ast.AST) else repr(value)


def _suspends(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it yields itself (functions in it do not count)."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(node))
    return False


def _statement_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[int]:
    """First lines of the statements that run when the function does: its own, not those of functions in it."""
    found: set[int] = set()
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt) and not isinstance(node, ast.Global | ast.Nonlocal | ast.Pass):
            constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not constant:
                found.add(node.lineno)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(node))
    return found


def _new_lines(before: str, after: str) -> frozenset[int]:
    """Lines of ``after`` that are not in ``before``, 1-based."""
    found: set[int] = set()
    for tag, _, _, start, end in _opcodes(before, after):
        if tag in ("replace", "insert"):
            found.update(range(start + 1, end + 1))
    return frozenset(found)


def _opcodes(before: str, after: str) -> list[tuple[str, int, int, int, int]]:
    matcher = difflib.SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False)
    return list(matcher.get_opcodes())


def moved(marks: Sequence[PlannedMark], before: str, after: str) -> list[PlannedMark]:
    """Marks of ``before`` at their places in ``after``; those whose own first or last line the patch edits are lost."""
    lines: dict[int, int] = {}
    for tag, start, end, to, _ in _opcodes(before, after):
        if tag == "equal":
            lines.update((start + n + 1, to + n + 1) for n in range(end - start))
    found = []
    for planned in marks:
        mark: Mark = planned.mark
        places = (lines.get(mark.line), lines.get(mark.end_line), lines.get(mark.function_line))
        if None not in places:
            line, end_line, function_line = (place or 0 for place in places)
            at = replace(mark, line=line, end_line=end_line, function_line=function_line)
            found.append(replace(planned, mark=at))
    return found
