"""One pass over a file's ``ast`` tree that collects its :class:`~awp_lint.detector.semantics.facts.FileFacts`."""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Sequence

from awp_lint.detector.semantics import conditions, once, regions
from awp_lint.detector.semantics.calling import Calling
from awp_lint.detector.semantics.conditions import NEVER, State
from awp_lint.detector.semantics.copies import Copied, first_line
from awp_lint.detector.semantics.definition import FunctionNode, child_nodes, parameter_names
from awp_lint.detector.semantics.drafts import ClassDraft, FunctionDraft
from awp_lint.detector.semantics.facts import (
    CLS,
    GUARD_FIRST,
    GUARD_OFF,
    GUARD_ONCE,
    GUARD_REFERENCE,
    GUARD_SKIP,
    SELF,
    UNKNOWN,
    BranchFact,
    CallFact,
    ClassFact,
    FileFacts,
    FunctionFact,
    LoopFact,
    Ref,
)
from awp_lint.detector.semantics.loops import loop_kind
from awp_lint.detector.semantics.masking import lines_with, source_lines
from awp_lint.detector.semantics.positions import last_alone
from awp_lint.detector.semantics.referring import chain
from awp_lint.detector.semantics.repeating import Repeating
from awp_lint.detector.semantics.spare import adds_exports, named_in_strings
from awp_lint.detector.semantics.switches import default_of
from awp_lint.detector.semantics.view import LoopKind, Region

_SKIPPED = Region.TRAINING | Region.TEST | Region.ERROR | Region.EXPORT | Region.FALLBACK | Region.DEBUG
_UNIT_KINDS = (LoopKind.STEPS, LoopKind.TOKENS, LoopKind.REQUESTS)
_COMMENT = re.compile(r"#\s*awp:\s*(hot|setup|set-up)\b")


_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_SILENT = (ast.Name, ast.Constant)
#: Values that say nothing of switches.
_TELLING_NOTHING = frozenset((ast.BinOp, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.JoinedStr))
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def extract(tree: ast.Module, text: str, copied: Copied | None = None) -> FileFacts:
    """The facts of a parsed file, which ``copied`` may spare to look for. Linear in the size of the tree; no recursion
    deeper than the nesting of blocks."""
    return _Extractor(tree, text, copied).facts()


class _Extractor(Calling):
    def __init__(self, tree: ast.Module, text: str, copied: Copied | None) -> None:
        super().__init__()
        self.repeating = None if copied is None else Repeating(copied)
        self.tree = tree
        self.text = text
        self.functions: list[FunctionDraft] = []
        self.exports: tuple[str, ...] | None = None
        self.pending: list[tuple[FunctionDraft, FunctionNode]] = []
        self.property_names: set[str] = set()
        self.nodes = 0
        self.loops = False
        self.turns: list[tuple[set[str], tuple[str, ...]]] = []  # of each loop around: its indices, the loops around it
        self._lines: list[str] | None = None
        self.cuts = sorted({*lines_with("[:, -1", text), *lines_with("[..., -1", text)})

    def facts(self) -> FileFacts:
        top = self.new_function("<module>", None, -1)
        top.kind = "module"
        self.block(self.tree.body, top, (), 0)
        for function, node in self.pending:  # grows while it is read
            if self.repeating is None or not self.repeating.does(function, node, self):
                self.body(function, node)
        self.comments()
        functions = tuple([self.finished(f) for f in self.functions])
        if self.repeating is not None:
            self.repeating.keep(functions)
        return FileFacts(
            imports=tuple(self.imports),
            functions=functions,
            classes=tuple(
                ClassFact(
                    c.qualname,
                    c.line,
                    c.outer,
                    tuple(c.bases),
                    tuple(c.decorators),
                    tuple(c.methods),
                    tuple(c.attributes),
                    tuple(c.defaults),
                )
                for c in self.classes
            ),
            names=tuple(self.names),
            variables=tuple((name, ref) for name, ref in top.env.items() if ref not in (UNKNOWN, name)),
            exports=None if adds_exports(self.text) else self.exports,
            nodes=self.nodes,
            loops=self.loops,
            strings=named_in_strings(self.text),
        )

    def finished(self, f: FunctionDraft) -> FunctionFact:
        if f.repeated is not None:
            return f.repeated.fact(f, self.property_names)
        properties = tuple(
            (name, loops, line, guard)
            for name, (loops, line, guard) in f.properties.items()
            if name in self.property_names
        )
        calls, branches = settled(f)
        return FunctionFact(
            f.qualname, f.line, f.header, f.body, f.cls, f.outer.index if f.outer else -1, f.kind, f.binding,
            f.region.value, tuple(f.decorators), tuple(f.routes), f.parameters, tuple(f.annotations),
            tuple(dict.fromkeys(f.returns)), calls, properties, tuple(f.writes), tuple(f.loops), f.awp,
            tuple(f.defaults), branches, f.closed, f.tensors,
        )  # fmt: skip

    def line(self, number: int) -> str:
        """A line of the text, counted as ``ast`` does."""
        if self._lines is None:
            self._lines = source_lines(self.text)
        return self._lines[number - 1]

    def comments(self) -> None:
        """Give ``# awp: hot`` and ``# awp: setup`` to the function on whose header, or above which, they stand."""
        if "awp:" not in self.text:
            return
        for number, line in enumerate(self.text.splitlines(), 1):
            found = _COMMENT.search(line)
            if found is None:
                continue
            for function in self.functions[1:]:
                first, last = function.header
                alone = line.lstrip().startswith("#")
                if first <= number <= last or (alone and number == first - 1):
                    function.awp = found.group(1).replace("set-up", "setup")

    # definitions ---------------------------------------------------------------------------------------------------

    def new_function(self, qualname: str, outer: FunctionDraft | None, cls: int) -> FunctionDraft:
        function = FunctionDraft(len(self.functions), qualname, outer, cls)
        self.functions.append(function)
        return function

    def define(self, node: FunctionNode, holder: FunctionDraft, cls: int, prefix: str) -> FunctionDraft:
        """Record a function and visit what the definition around it evaluates; the body comes later."""
        name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        function = self.new_function(prefix + name, holder, cls)
        args = node.args
        function.parameters = parameter_names(args)
        function.defaults = default_codes(args)
        function.rest = args.kwarg.arg if args.kwarg is not None else ""
        function.closed = args.kwarg is None and not getattr(node, "decorator_list", None)
        function.line = node.lineno
        if isinstance(node, ast.Lambda):
            function.kind = "lambda"
            function.header = (node.lineno, node.lineno)
        else:
            self.define_named(function, node, holder)
        for default in (*args.defaults, *args.kw_defaults):
            if default is not None:
                self.expr(default, holder, (), 0)
        self.pending.append((function, node))
        return function

    def define_named(
        self, function: FunctionDraft, node: ast.FunctionDef | ast.AsyncFunctionDef, holder: FunctionDraft
    ) -> None:
        if isinstance(node, ast.AsyncFunctionDef):
            function.kind = "async"
        if node.decorator_list:
            function.line = node.decorator_list[0].lineno
        first = first_line(node.body[0])
        function.header = (function.line, max(node.lineno, first - 1))
        indent = node.body[0].col_offset
        if first > node.lineno and not self.line(first)[:indent].strip():
            function.body = (first, node.end_lineno or first, indent)
        for decorator in node.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            function.decorators.append(self.name_ref(target, holder))
            last = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            function.routes.append(last)
            if last in ("property", "cached_property", "setter", "functools.cached_property"):
                function.binding = "property"
                self.property_names.add(node.name)
            elif last == "staticmethod":
                function.binding = "static"
            elif last == "classmethod":
                function.binding = "class"
            if isinstance(decorator, ast.Call):
                self.expr(decorator, holder, (), 0)
        args = node.args
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
            if arg.annotation is None:
                continue
            if (known := self.annotation(arg.annotation, holder)) != UNKNOWN:
                function.annotations.append((arg.arg, known))
            elif not function.tensors and (chain(arg.annotation) or "").rpartition(".")[2] == "Tensor":
                function.tensors = self.of_library(arg.annotation, holder)
        if node.returns is not None and (known := self.annotation(node.returns, holder)) != UNKNOWN:
            function.returns.append(known)

    def body(self, function: FunctionDraft, node: FunctionNode) -> None:
        env = function.env
        function.node = node
        for name in function.parameters:
            env[name] = ("p", function.index, name)
        if function.cls >= 0 and function.parameters and function.binding != "static":
            env[function.parameters[0]] = CLS if function.binding == "class" else SELF
        if isinstance(node, ast.Lambda):
            function.returns.append(self.ref(node.body, function))
            self.expr(node.body, function, (), 0)
            return
        function.region |= self.definition_region(node, function)
        if self.cuts:
            at = bisect.bisect_left(self.cuts, node.lineno)
            if at < len(self.cuts) and self.cuts[at] <= (node.end_lineno or node.lineno):
                function.cut = last_alone(node)
        self.block(node.body, function, (), 0)

    def definition_region(self, node: ast.FunctionDef | ast.AsyncFunctionDef, function: FunctionDraft) -> Region:
        found = regions.name_region(node.name)
        for decorator in node.decorator_list:
            found |= regions.opened_by(decorator, self.imported_name)
        if function.cls >= 0:
            found |= regions.class_region(function.qualname.rpartition(".")[0].rpartition(".")[2])
        return found | regions.body_region(node.body, self.imported_name)

    def imported_name(self, node: ast.expr) -> str | None:
        """Dotted name of a chain rooted in an absolute import of this file, for the region tables."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        self.asked.roots.add(node.id)
        root = self.roots.get(node.id)
        return None if root is None else ".".join([root, *reversed(parts)])

    def define_class(
        self, node: ast.ClassDef, holder: FunctionDraft, prefix: str, loops: tuple[str, ...], guard: int
    ) -> None:
        index = len(self.classes)
        fact = ClassDraft(prefix + node.name, node.lineno, holder.index)
        self.classes.append(fact)
        for base in node.bases:
            fact.bases.append(self.name_ref(base.value if isinstance(base, ast.Subscript) else base, holder))
        for decorator in node.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            fact.decorators.append(self.name_ref(target, holder))
        inner = fact.qualname + "."
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                function = self.define(statement, holder, index, inner)
                fact.methods.append((statement.name, function.index))
            elif isinstance(statement, ast.ClassDef):
                self.define_class(statement, holder, inner, loops, guard)
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                known = self.annotation(statement.annotation, holder)
                if known == UNKNOWN and statement.value is not None:
                    known = self.ref(statement.value, holder)
                if known != UNKNOWN:
                    fact.attributes.append((statement.target.id, holder.index, known))
                if statement.value is not None:
                    self.expr(statement.value, holder, loops, guard)
                if node.name.endswith("Config"):
                    fact.defaults.append((statement.target.id, default_of(statement.value)))
            elif isinstance(statement, ast.Assign):
                known = self.ref(statement.value, holder)
                for target in statement.targets:
                    if isinstance(target, ast.Name) and known != UNKNOWN:
                        fact.attributes.append((target.id, holder.index, known))
                    if isinstance(target, ast.Name) and node.name.endswith("Config"):
                        fact.defaults.append((target.id, default_of(statement.value)))
                self.expr(statement.value, holder, loops, guard)
            else:
                self.class_block(statement, holder, index, inner, fact, loops, guard)

    def class_block(
        self,
        node: ast.stmt,
        holder: FunctionDraft,
        index: int,
        inner: str,
        fact: ClassDraft,
        loops: tuple[str, ...],
        guard: int,
    ) -> None:
        """Other statements of a class body: methods under ``if`` or ``try`` count as methods."""
        if isinstance(node, (ast.If, ast.Try)):
            for part in ast.iter_child_nodes(node):
                if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    function = self.define(part, holder, index, inner)
                    fact.methods.append((part.name, function.index))
                elif isinstance(part, ast.stmt):
                    self.class_block(part, holder, index, inner, fact, loops, guard)
        elif isinstance(node, ast.Expr):
            self.expr(node.value, holder, loops, guard)

    # statements ----------------------------------------------------------------------------------------------------

    def block(self, body: Sequence[ast.stmt], f: FunctionDraft, loops: tuple[str, ...], guard: int) -> None:
        around = f.when
        for at, node in enumerate(body):
            kind = type(node)
            if kind is ast.Expr:
                self.expr(node.value, f, loops, guard)  # type: ignore[attr-defined]
            elif kind is ast.Assign:
                self.assign(node, f, loops, guard)  # type: ignore[arg-type]
            elif kind is ast.If:
                self.branch(node, f, loops, guard)  # type: ignore[arg-type]
                if f.index and once.leaves_when_made(node, body[at + 1 :]):  # type: ignore[arg-type]
                    guard |= GUARD_ONCE
                if f.index and once.left_in_later_steps(node):
                    guard |= GUARD_FIRST
                if f.index and regions.leaves_to_rest(node):
                    guard |= GUARD_SKIP
                if type(node.body[-1]) in _LEAVING and not node.orelse:  # type: ignore[attr-defined]
                    f.when = self.where(node.test, False, body[at + 1 :], f)  # type: ignore[attr-defined]
            elif kind is ast.Return:
                if node.value is not None:  # type: ignore[attr-defined]
                    self.returned(node.value, f, loops, guard)  # type: ignore[attr-defined]
            else:
                self.other(node, f, loops, guard)
        f.when = around

    def where(
        self, test: ast.expr, taken: bool, body: Sequence[ast.stmt | ast.expr], f: FunctionDraft
    ) -> tuple[int, ...]:
        """The branches that a body is in below ``test``, those around included."""
        found = f.when
        if not body or not f.parameters:
            return found
        flags = {} if f.loop_end else f.flags  # a later turn sees what an earlier one binds
        for name, state in conditions.held(test, taken, flags):
            known = any(f.branches[number][0][:2] == (name, state) for number in found)
            if not known and (f.keeps(name) if "." in name else name in f.parameters and f.decides(name, state)):
                first, last = body[0], body[-1]
                end = last.end_lineno or last.lineno, last.end_col_offset or 0
                f.branches.append((BranchFact(name, state, first.lineno, first.col_offset, *end), f.loop_end))
                found = (*found, len(f.branches) - 1)
        return found

    def other(self, node: ast.stmt, f: FunctionDraft, loops: tuple[str, ...], guard: int) -> None:
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            self.loop(node, f, loops, guard)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = self.define(node, f, -1, f.scope)
            f.env[node.name] = ("f", function.index) if f.index else node.name
            if not f.index:
                self.names[node.name] = None
        elif isinstance(node, ast.ClassDef):
            self.define_class(node, f, f.scope, loops, guard)
            if f.index:
                f.env[node.name] = f"{f.scope}{node.name}"
            else:
                self.names[node.name] = None
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self.expr(item.context_expr, f, loops, guard)
                if item.optional_vars is not None:
                    self.bind(item.optional_vars, self.ref(item.context_expr, f), f)
                if regions.opened_by(item.context_expr, self.imported_name) & Region.INFERENCE:
                    guard |= GUARD_OFF
            self.block(node.body, f, loops, guard)
        elif isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            self.attempt(node, f, loops, guard)
        elif isinstance(node, ast.AnnAssign):
            self.annotated(node, f, loops, guard)
        elif isinstance(node, ast.AugAssign):
            self.expr(node.value, f, loops, guard)
            if isinstance(node.target, ast.Attribute):
                self.write(node.target, f)
            elif isinstance(node.target, ast.Name):
                f.store(node.target.id, node.lineno)
                f.flags[node.target.id] = None
            self.extended(node, f)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imported(node, f)
        elif isinstance(node, ast.Assert):
            self.expr(node.test, f, loops, guard)
        elif isinstance(node, ast.Raise):
            if node.exc is not None:
                self.expr(node.exc, f, loops, guard | GUARD_SKIP)
        elif isinstance(node, ast.Match):
            self.expr(node.subject, f, loops, guard)
            for case in node.cases:
                self.block(case.body, f, loops, guard)

    def assign(self, node: ast.Assign, f: FunctionDraft, loops: tuple[str, ...], guard: int) -> None:
        self.expr(node.value, f, loops, guard)
        if f.index == 0 and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            self.exports = _literal_names(node.value)
        ref = self.ref(node.value, f)
        f.handed = _handed_to_base(node.value)
        for target in node.targets:
            name = target.id if f.index and isinstance(target, ast.Name) else ""
            known = f.flags.get(name, NEVER)
            self.bind(target, ref, f, node.value)
            if name:
                self.flag(name, node.value, known, f)
        f.handed = frozenset()

    def flag(self, name: str, value: ast.expr, known: State | None, f: FunctionDraft) -> None:
        """``often = self.every > 0 and …``; ``seen = False`` … ``seen = True`` below a switch. ``known``: what it
        needed before."""
        kind = type(value)
        plain = kind is ast.Constant
        if plain and not value.value:  # type: ignore[attr-defined]
            f.flags[name] = known
            return
        if not f.when and kind in _TELLING_NOTHING:
            f.flags[name] = None
            return
        states = [b[:2] for b in f.holding()]
        if not plain:
            states += conditions.held(value, True)
        needed = next((s for s in states if "." in s[0] and f.keeps(s[0])), None)
        f.flags[name] = needed if known == NEVER else conditions.either_of([known, needed])

    def annotated(self, node: ast.AnnAssign, f: FunctionDraft, loops: tuple[str, ...], guard: int) -> None:
        ref = UNKNOWN
        if node.value is not None:
            self.expr(node.value, f, loops, guard)
            ref = self.ref(node.value, f)
        if ref == UNKNOWN:
            ref = self.annotation(node.annotation, f)
        self.bind(node.target, ref, f, node.value)

    def branch(self, node: ast.If, f: FunctionDraft, loops: tuple[str, ...], guard: int) -> None:
        self.expr(node.test, f, loops, guard)
        taken = guard | self.guard_of(node.test, True, node.body)
        if not guard & GUARD_ONCE and once.lazily_made(node):
            taken |= GUARD_ONCE
        if once.first_step(node.test, True) or self.asks_for_prepared(node, f):
            taken |= GUARD_FIRST
        before = dict(f.env) if node.orelse else None
        around = f.when
        without = self.where(node.test, False, node.orelse, f)  # before the other side binds names anew
        f.when = self.where(node.test, True, node.body, f)
        self.block(node.body, f, self.of_one_turn(node.test, loops), taken)
        f.when = around
        if before is not None:
            after = f.env
            f.env = before
            other = guard | self.guard_of(node.test, False, node.orelse)
            if once.first_step(node.test, False):
                other |= GUARD_FIRST
            f.when = without
            self.block(node.orelse, f, loops, other)
            f.when = around
            self.merge(f, after)

    @staticmethod
    def asks_for_prepared(node: ast.If, f: FunctionDraft) -> bool:
        """``if mask is None: mask = …`` where ``generate`` prepares the inputs of a step: it hands on what there is."""
        if not f.qualname.endswith(".prepare_inputs_for_generation"):
            return False
        missing = [name for name, state in conditions.held(node.test, True) if state == "none" and name in f.parameters]
        stored = (part for statement in node.body for part in ast.walk(statement) if isinstance(part, ast.Name))
        return any(part.id in missing and isinstance(part.ctx, ast.Store) for part in stored)

    def of_one_turn(self, test: ast.expr, loops: tuple[str, ...]) -> tuple[str, ...]:
        """The loops that a branch runs in: without the innermost where the test is for one turn of it."""
        if not self.turns or not loops:
            return loops
        counted, outer = self.turns[-1]
        return outer if counted and counted & once.turns_of_one(test) else loops

    def guard_of(self, test: ast.expr, taken: bool, body: Sequence[ast.stmt]) -> int:
        found = regions.test_region(test, taken)
        if body and isinstance(body[-1], ast.Raise):
            return GUARD_SKIP
        return GUARD_SKIP if found is not Region.NONE and found & _SKIPPED else 0

    def attempt(self, node: ast.stmt, f: FunctionDraft, loops: tuple[str, ...], guard: int) -> None:
        for part in ("body", "orelse", "finalbody"):
            self.block(getattr(node, part), f, loops, guard)
        for handler in getattr(node, "handlers", ()):
            self.block(handler.body, f, loops, guard | GUARD_SKIP)

    def loop(
        self, node: ast.For | ast.AsyncFor | ast.While, f: FunctionDraft, loops: tuple[str, ...], guard: int
    ) -> None:
        kind = loop_kind(node)
        inner = self.inside(loops, kind)
        around = f.loop_end
        f.loop_end = around or node.end_lineno or node.lineno
        self.loops = self.loops or not f.index
        if kind in _UNIT_KINDS:
            end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
            f.loops.append(LoopFact(kind.value, node.lineno, node.col_offset, end_line, end_column))
        if isinstance(node, ast.While):
            self.expr(node.test, f, inner, guard)
        else:
            self.expr(node.iter, f, loops, guard)
            self.iterate(node.target, node.iter, f)
        self.turns.append((once.indices(node), loops))
        above = f.when
        if (more := conditions.turns(node)) is not None:
            f.when = self.where(more, True, node.body, f)
        self.block(node.body, f, inner, guard)
        f.when = above
        self.turns.pop()
        f.loop_end = around
        self.block(node.orelse, f, loops, guard)

    def inside(self, loops: tuple[str, ...], kind: LoopKind) -> tuple[str, ...]:
        if kind in (LoopKind.FIXED, LoopKind.RETRIES):
            return loops
        grown = (*loops, kind.value)
        return self.interned.setdefault(grown, grown)  # type: ignore[return-value]

    def returned(self, node: ast.expr, f: FunctionDraft, loops: tuple[str, ...], guard: int) -> None:
        self.expr(node, f, loops, guard)
        if len(f.returns) < 4:
            ref = self.ref(node, f)
            if ref != UNKNOWN:
                f.returns.append(ref)

    # expressions ---------------------------------------------------------------------------------------------------

    def expr(self, root: ast.expr, f: FunctionDraft, loops: tuple[str, ...], guard: int) -> None:
        """Record the calls in an expression."""
        stack: list[ast.AST] = [root]
        count = 0
        while stack:
            node = stack.pop()
            count += 1
            kind = type(node)
            if kind is ast.Name or kind is ast.Constant:
                continue
            if kind is ast.Attribute:
                value = node.value  # type: ignore[attr-defined]
                if type(value) is ast.Name:
                    if value.id == "self":
                        name = node.attr  # type: ignore[attr-defined]
                        known = f.properties.get(name)
                        if known is None or len(known[0]) < len(loops):
                            f.properties[name] = (loops, node.lineno, guard)  # type: ignore[attr-defined]
                else:
                    stack.append(value)
            elif kind is ast.Call:
                self.call(node, f, loops, guard)  # type: ignore[arg-type]
                func = node.func  # type: ignore[attr-defined]
                if type(func) is ast.Attribute:
                    if type(func.value) is not ast.Name:
                        stack.append(func.value)
                elif type(func) is not ast.Name:
                    stack.append(func)
                for arg in node.args:  # type: ignore[attr-defined]
                    if arg.__class__ not in _SILENT:
                        stack.append(arg)
                for keyword in node.keywords:  # type: ignore[attr-defined]
                    if keyword.value.__class__ not in _SILENT:
                        stack.append(keyword.value)
            elif kind is ast.IfExp:
                self.choice(node, f, loops, guard)  # type: ignore[arg-type]
            elif kind is ast.BoolOp:
                self.until_decided(node, f, loops, guard)  # type: ignore[arg-type]
            elif kind is ast.Lambda:
                function = self.define(node, f, -1, f.scope)  # type: ignore[arg-type]
                lambda_ref: Ref = ("f", function.index)
                fact = CallFact(node.lineno, node.col_offset, lambda_ref, loops, guard | GUARD_REFERENCE)  # type: ignore[attr-defined]
                f.add(fact)
            elif kind in _COMPREHENSIONS:
                self.comprehension(node, f, loops, guard)  # type: ignore[arg-type]
            elif kind is ast.NamedExpr:
                stack.append(node.value)  # type: ignore[attr-defined]
                self.bind(node.target, self.ref(node.value, f), f)  # type: ignore[attr-defined]
            else:
                stack += child_nodes(node)
        self.nodes += count

    def choice(self, node: ast.IfExp, f: FunctionDraft, loops: tuple[str, ...], guard: int) -> None:
        self.expr(node.test, f, loops, guard)
        around = f.when
        f.when = self.where(node.test, True, (node.body,), f)
        self.expr(node.body, f, loops, guard | self.guard_of(node.test, True, ()))
        f.when = around
        f.when = self.where(node.test, False, (node.orelse,), f)
        self.expr(node.orelse, f, loops, guard | self.guard_of(node.test, False, ()))
        f.when = around

    def until_decided(self, node: ast.BoolOp, f: FunctionDraft, loops: tuple[str, ...], guard: int) -> None:
        """``a and b``: ``b`` is looked at where ``a`` holds, and that of ``a or b`` where it does not."""
        around = f.when
        taken = isinstance(node.op, ast.And)
        for at, value in enumerate(node.values):
            if value.__class__ not in _SILENT:
                self.expr(value, f, loops, guard)
            rest = node.values[at + 1 :]
            if any(part.__class__ not in _SILENT for part in rest):
                f.when = self.where(value, taken, rest, f)
        f.when = around

    def comprehension(self, node: ast.expr, f: FunctionDraft, loops: tuple[str, ...], guard: int) -> None:
        inner = loops
        self.loops = self.loops or not f.index
        for generator in node.generators:  # type: ignore[attr-defined]
            self.expr(generator.iter, f, inner, guard)
            self.iterate(generator.target, generator.iter, f)
            inner = self.inside(inner, loop_kind(generator))
            for test in generator.ifs:
                self.expr(test, f, inner, guard)
        if isinstance(node, ast.DictComp):
            self.expr(node.key, f, inner, guard)
            self.expr(node.value, f, inner, guard)
        else:
            self.expr(node.elt, f, inner, guard)  # type: ignore[attr-defined]


def _handed_to_base(node: ast.expr) -> frozenset[str]:
    """The names that ``super().prepare(boxes, masks)`` is given, which gives them back: what is None stays None."""
    if type(node) is not ast.Call or type(node.func) is not ast.Attribute:
        return frozenset()
    holder = node.func.value
    if not (type(holder) is ast.Call and type(holder.func) is ast.Name and holder.func.id == "super"):
        return frozenset()
    return frozenset(arg.id for arg in node.args if type(arg) is ast.Name)


def default_codes(args: ast.arguments) -> list[tuple[str, str]]:
    """The parameters that have a default, with its code."""
    positional = [*args.posonlyargs, *args.args]
    pairs = [*zip(reversed(positional), reversed(args.defaults), strict=False)][::-1]
    found = [(arg.arg, conditions.code_of_default(arg.arg, default)) for arg, default in pairs]
    by_name = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return found + [
        (arg.arg, conditions.code_of_default(arg.arg, default)) for arg, default in by_name if default is not None
    ]


def settled(f: FunctionDraft) -> tuple[tuple[CallFact, ...], tuple[BranchFact, ...]]:
    """Calls and branches of a function that was walked: a loop's later turns see what its earlier ones bind."""
    right = [not end or f.decides(branch.parameter, branch.state, end) for branch, end in f.branches]
    calls = f.calls
    for number, when in f.guarded:
        states = tuple(dict.fromkeys(f.branches[b][0][:2] for b in when if right[b]))
        calls[number] = calls[number]._replace(when=states)
    for number, end in f.unsure:
        passed = calls[number].passed
        changed = tuple(_as_passed(code, f, end) for code in passed)
        if changed != passed:
            calls[number] = calls[number]._replace(passed=changed)
    return tuple(calls), tuple(branch for (branch, _), valid in zip(f.branches, right, strict=True) if valid)


def _as_passed(code: str, f: FunctionDraft, end: int) -> str:
    """A code of what is passed in a loop that ends in this line."""
    keyword, mark, name = code.rpartition("~") if "~" in code else code.rpartition("=")
    if name not in f.parameters or not mark or (mark == "=" and keyword and keyword[-1:] != "="):
        return code
    if not f.decides(name, "given", end):
        return keyword
    return keyword + ("=" if f.decides(name, "false", end) else "~") + name


def _literal_names(node: ast.expr) -> tuple[str, ...] | None:
    if isinstance(node, (ast.List, ast.Tuple)):
        names = tuple(e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str))
        return names if len(names) == len(node.elts) else None
    return None
