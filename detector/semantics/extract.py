"""One pass over a file's ``ast`` tree that collects its :class:`~awp_lint.detector.semantics.facts.FileFacts`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from awp_lint.detector.semantics import regions
from awp_lint.detector.semantics.definition import FunctionNode, child_nodes, parameter_names
from awp_lint.detector.semantics.facts import (
    CLS,
    GUARD_FIRST,
    GUARD_ONCE,
    GUARD_REFERENCE,
    GUARD_SKIP,
    GUARD_START,
    SELF,
    SUPER,
    UNKNOWN,
    CallFact,
    ClassFact,
    FileFacts,
    FunctionFact,
    ImportFact,
    LoopFact,
    Ref,
)
from awp_lint.detector.semantics.loops import loop_kind
from awp_lint.detector.semantics.masking import source_lines
from awp_lint.detector.semantics.stopwords import BUILTINS, LIBRARIES, METHODS
from awp_lint.detector.semantics.view import LoopKind, Region

_SKIPPED = Region.TRAINING | Region.TEST | Region.ERROR | Region.EXPORT
_UNIT_KINDS = (LoopKind.STEPS, LoopKind.TOKENS, LoopKind.REQUESTS)
_COMMENT = re.compile(r"#\s*awp:\s*(hot|setup|set-up)\b")

#: Methods and functions that give back (a form of) their receiver or first argument.
_SAME_METHODS = frozenset(
    (
        *("to", "eval", "cuda", "cpu", "half", "float", "bfloat16", "double", "train", "requires_grad_", "type"),
        *("compile", "copy", "clone", "options", "remote"),
    )
)
_SAME_FUNCTIONS = frozenset(
    (
        *("torch.compile", "torch.jit.script", "torch.jit.trace", "copy.copy", "copy.deepcopy", "deepcopy", "partial"),
        *("functools.partial", "tqdm", "tqdm.tqdm", "islice", "itertools.islice", "reversed", "list", "tuple", "iter"),
        *("sorted", "set", "checkpoint", "nn.DataParallel", "torch.nn.DataParallel", "next", "asyncio.create_task"),
        *("DistributedDataParallel", "wraps", "functools.wraps"),
    )
)
_CONTAINERS = frozenset(("ModuleList", "ModuleDict", "Sequential", "LogitsProcessorList", "StoppingCriteriaList"))
_STARTERS = frozenset(
    ("Thread", "Process", "submit", "run_in_executor", "to_thread", "create_task", "run_in_threadpool")
)

_MAX_DEPTH = 6  # of a Ref: longer chains are unknown

_SILENT = (ast.Name, ast.Constant)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def extract(tree: ast.Module, text: str) -> FileFacts:
    """The facts of a parsed file. Linear in the size of the tree; no recursion deeper than the nesting of blocks."""
    return _Extractor(tree, text).facts()


class _Function:
    """A function under construction."""

    __slots__ = (
        "annotations", "awp", "binding", "body", "calls", "cls", "decorators", "env", "header", "index", "kind", "line",
        "loops", "outer", "parameters", "properties", "qualname", "region", "returns", "routes", "scope", "writes",
    )  # fmt: skip

    def __init__(self, index: int, qualname: str, outer: _Function | None, cls: int) -> None:
        self.index = index
        self.qualname = qualname
        self.outer = outer
        self.cls = cls
        self.kind = "function"
        self.binding = ""
        self.line = 1
        self.header = (1, 1)
        self.body = (0, 0, 0)
        self.region = Region.NONE
        self.decorators: list[Ref] = []
        self.routes: list[str] = []
        self.parameters: tuple[str, ...] = ()
        self.annotations: list[tuple[str, Ref]] = []
        self.returns: list[Ref] = []
        self.calls: list[CallFact] = []
        self.properties: dict[str, tuple[tuple[str, ...], int, int]] = {}
        self.writes: dict[str, None] = {}
        self.loops: list[LoopFact] = []
        self.awp = ""
        self.env: dict[str, Ref] = {}
        self.scope = qualname + "." if index else ""


class _Class:
    __slots__ = ("attributes", "bases", "decorators", "line", "methods", "outer", "qualname")

    def __init__(self, qualname: str, line: int, outer: int) -> None:
        self.qualname = qualname
        self.line = line
        self.outer = outer
        self.bases: list[Ref] = []
        self.decorators: list[Ref] = []
        self.methods: list[tuple[str, int]] = []
        self.attributes: list[tuple[str, int, Ref]] = []


class _Extractor:
    def __init__(self, tree: ast.Module, text: str) -> None:
        self.tree = tree
        self.text = text
        self.imports: list[ImportFact] = []
        self.functions: list[_Function] = []
        self.classes: list[_Class] = []
        self.exports: tuple[str, ...] | None = None
        self.pending: list[tuple[_Function, FunctionNode]] = []
        self.interned: dict[object, object] = {}
        self.property_names: set[str] = set()
        self.libraries: set[str] = set()
        self.nodes = 0
        self.loops = False
        self.names: dict[str, None] = {}
        self._lines: list[str] | None = None

    def facts(self) -> FileFacts:
        top = self.new_function("<module>", None, -1)
        top.kind = "module"
        self.block(self.tree.body, top, (), 0)
        for function, node in self.pending:  # grows while it is read
            self.body(function, node)
        self.comments()
        return FileFacts(
            imports=tuple(self.imports),
            functions=tuple(self.finished(f) for f in self.functions),
            classes=tuple(
                ClassFact(
                    c.qualname,
                    c.line,
                    c.outer,
                    tuple(c.bases),
                    tuple(c.decorators),
                    tuple(c.methods),
                    tuple(c.attributes),
                )
                for c in self.classes
            ),
            names=tuple(self.names),
            variables=tuple((name, ref) for name, ref in top.env.items() if ref not in (UNKNOWN, name)),
            exports=self.exports,
            nodes=self.nodes,
            loops=self.loops,
        )

    def finished(self, f: _Function) -> FunctionFact:
        properties = tuple(
            (name, loops, line, guard)
            for name, (loops, line, guard) in f.properties.items()
            if name in self.property_names
        )
        return FunctionFact(
            f.qualname, f.line, f.header, f.body, f.cls, f.outer.index if f.outer else -1, f.kind, f.binding,
            f.region.value, tuple(f.decorators), tuple(f.routes), f.parameters, tuple(f.annotations),
            tuple(dict.fromkeys(f.returns)), tuple(f.calls), properties, tuple(f.writes), tuple(f.loops), f.awp,
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

    def new_function(self, qualname: str, outer: _Function | None, cls: int) -> _Function:
        function = _Function(len(self.functions), qualname, outer, cls)
        self.functions.append(function)
        return function

    def define(self, node: FunctionNode, holder: _Function, cls: int, prefix: str) -> _Function:
        """Record a function and visit what the definition around it evaluates; the body comes later."""
        name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        function = self.new_function(prefix + name, holder, cls)
        args = node.args
        function.parameters = parameter_names(args)
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
        self, function: _Function, node: ast.FunctionDef | ast.AsyncFunctionDef, holder: _Function
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
            if arg.annotation is not None and (known := self.annotation(arg.annotation, holder)) != UNKNOWN:
                function.annotations.append((arg.arg, known))
        if node.returns is not None and (known := self.annotation(node.returns, holder)) != UNKNOWN:
            function.returns.append(known)

    def body(self, function: _Function, node: FunctionNode) -> None:
        env = function.env
        for name in function.parameters:
            env[name] = ("p", function.index, name)
        if function.cls >= 0 and function.parameters and function.binding != "static":
            env[function.parameters[0]] = CLS if function.binding == "class" else SELF
        if isinstance(node, ast.Lambda):
            function.returns.append(self.ref(node.body, function))
            self.expr(node.body, function, (), 0)
            return
        function.region |= self.definition_region(node, function)
        self.block(node.body, function, (), 0)

    def definition_region(self, node: ast.FunctionDef | ast.AsyncFunctionDef, function: _Function) -> Region:
        found = regions.name_region(node.name)
        for decorator in node.decorator_list:
            found |= regions.opened_by(decorator, self.imported_name)
        return found

    def imported_name(self, node: ast.expr) -> str | None:
        """Dotted name of a chain rooted in an absolute import of this file, for the region tables."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        for fact in self.imports:
            if fact.bound == node.id and fact.level == 0:
                root = fact.module if fact.name is None else f"{fact.module}.{fact.name}"
                return ".".join([root, *reversed(parts)])
        return None

    def define_class(
        self, node: ast.ClassDef, holder: _Function, prefix: str, loops: tuple[str, ...], guard: int
    ) -> None:
        index = len(self.classes)
        fact = _Class(prefix + node.name, node.lineno, holder.index)
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
            elif isinstance(statement, ast.Assign):
                known = self.ref(statement.value, holder)
                for target in statement.targets:
                    if isinstance(target, ast.Name) and known != UNKNOWN:
                        fact.attributes.append((target.id, holder.index, known))
                self.expr(statement.value, holder, loops, guard)
            else:
                self.class_block(statement, holder, index, inner, fact, loops, guard)

    def class_block(
        self,
        node: ast.stmt,
        holder: _Function,
        index: int,
        inner: str,
        fact: _Class,
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

    def block(self, body: Sequence[ast.stmt], f: _Function, loops: tuple[str, ...], guard: int) -> None:
        for node in body:
            kind = type(node)
            if kind is ast.Expr:
                self.expr(node.value, f, loops, guard)  # type: ignore[attr-defined]
            elif kind is ast.Assign:
                self.assign(node, f, loops, guard)  # type: ignore[arg-type]
            elif kind is ast.If:
                self.branch(node, f, loops, guard)  # type: ignore[arg-type]
            elif kind is ast.Return:
                if node.value is not None:  # type: ignore[attr-defined]
                    self.returned(node.value, f, loops, guard)  # type: ignore[attr-defined]
            else:
                self.other(node, f, loops, guard)

    def other(self, node: ast.stmt, f: _Function, loops: tuple[str, ...], guard: int) -> None:
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
            self.block(node.body, f, loops, guard)
        elif isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            self.attempt(node, f, loops, guard)
        elif isinstance(node, ast.AnnAssign):
            self.annotated(node, f, loops, guard)
        elif isinstance(node, ast.AugAssign):
            self.expr(node.value, f, loops, guard)
            if isinstance(node.target, ast.Attribute):
                self.write(node.target, f)
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

    def assign(self, node: ast.Assign, f: _Function, loops: tuple[str, ...], guard: int) -> None:
        self.expr(node.value, f, loops, guard)
        if f.index == 0 and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            self.exports = _literal_names(node.value)
        ref = self.ref(node.value, f)
        for target in node.targets:
            self.bind(target, ref, f, node.value)

    def annotated(self, node: ast.AnnAssign, f: _Function, loops: tuple[str, ...], guard: int) -> None:
        ref = UNKNOWN
        if node.value is not None:
            self.expr(node.value, f, loops, guard)
            ref = self.ref(node.value, f)
        if ref == UNKNOWN:
            ref = self.annotation(node.annotation, f)
        self.bind(node.target, ref, f, node.value)

    def bind(self, target: ast.expr, ref: Ref, f: _Function, value: ast.expr | None = None) -> None:
        """Give a target what it now refers to."""
        if isinstance(target, ast.Name):
            known = f.env.get(target.id)
            if known is not None and known != ref and known != UNKNOWN and ref != UNKNOWN:
                ref = self.either(known, ref)
            f.env[target.id] = ref
            if not f.index:
                self.names[target.id] = None
        elif isinstance(target, ast.Attribute):
            self.write(target, f, ref)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts: Sequence[ast.expr] = value.elts if isinstance(value, (ast.Tuple, ast.List)) else ()
            made = self.made_by_lambda(value, f)
            for index, part in enumerate(target.elts):
                if len(parts) == len(target.elts):
                    self.bind(part, self.ref(parts[index], f), f, parts[index])
                else:
                    self.bind(part, made, f)
        elif isinstance(target, ast.Subscript):
            if isinstance(target.value, ast.Attribute):
                self.write(target.value, f, self.intern(("{}", ref)) if ref != UNKNOWN else UNKNOWN)
            elif isinstance(target.value, ast.Name) and ref != UNKNOWN:
                self.grow(target.value, ref, f)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, UNKNOWN, f)

    def made_by_lambda(self, value: ast.expr | None, f: _Function) -> Ref:
        """``a, b, layers = make_layers(n, lambda …: Layer(…))``: containers of what the lambda makes."""
        if isinstance(value, ast.Call):
            for arg in value.args:
                if isinstance(arg, ast.Lambda) and isinstance(arg.body, ast.Call):
                    made = self.ref(arg.body, f)
                    if made != UNKNOWN:
                        return self.intern(("{}", made))
        return UNKNOWN

    def write(self, target: ast.Attribute, f: _Function, ref: Ref = UNKNOWN) -> None:
        """``self.x = …``."""
        if not isinstance(target.value, ast.Name) or f.env.get(target.value.id) != SELF:
            return
        f.writes[target.attr] = None
        holder = self.class_of(f)
        if ref != UNKNOWN and holder is not None:
            holder.attributes.append((target.attr, f.index, ref))

    def class_of(self, f: _Function) -> _Class | None:
        current: _Function | None = f
        while current is not None:
            if current.cls >= 0:
                return self.classes[current.cls]
            current = current.outer
        return None

    def grow(self, container: ast.expr, ref: Ref, f: _Function) -> None:
        """``layers.append(Block())``, ``self.layers[i] = Block()``."""
        made = self.intern(("{}", ref))
        if isinstance(container, ast.Name):
            known = f.env.get(container.id, UNKNOWN)
            if isinstance(known, tuple) and known[0] == "{}" and len(known) <= _MAX_DEPTH:
                made = known if ref in known else self.intern((*known, ref))
            if container.id in f.env:
                f.env[container.id] = made
        elif isinstance(container, ast.Attribute):
            self.write(container, f, made)

    def branch(self, node: ast.If, f: _Function, loops: tuple[str, ...], guard: int) -> None:
        self.expr(node.test, f, loops, guard)
        taken = guard | self.guard_of(node.test, True, node.body)
        if not guard & GUARD_ONCE and regions.lazily_made(node):
            taken |= GUARD_ONCE
        if regions.first_step(node.test, True):
            taken |= GUARD_FIRST
        before = dict(f.env) if node.orelse else None
        self.block(node.body, f, loops, taken)
        if before is not None:
            after = f.env
            f.env = before
            other = guard | self.guard_of(node.test, False, node.orelse)
            if regions.first_step(node.test, False):
                other |= GUARD_FIRST
            self.block(node.orelse, f, loops, other)
            self.merge(f, after)

    def merge(self, f: _Function, other: dict[str, Ref]) -> None:
        """Join the names of two branches."""
        env = f.env
        for name, ref in other.items():
            known = env.get(name)
            if known is None or known == UNKNOWN:
                env[name] = ref
            elif known != ref and ref != UNKNOWN:
                env[name] = self.either(known, ref)

    def guard_of(self, test: ast.expr, taken: bool, body: Sequence[ast.stmt]) -> int:
        found = regions.test_region(test, taken)
        if body and isinstance(body[-1], ast.Raise):
            found |= Region.ERROR
        return GUARD_SKIP if found & _SKIPPED else 0

    def attempt(self, node: ast.stmt, f: _Function, loops: tuple[str, ...], guard: int) -> None:
        for part in ("body", "orelse", "finalbody"):
            self.block(getattr(node, part), f, loops, guard)
        for handler in getattr(node, "handlers", ()):
            self.block(handler.body, f, loops, guard | GUARD_SKIP)

    def loop(self, node: ast.For | ast.AsyncFor | ast.While, f: _Function, loops: tuple[str, ...], guard: int) -> None:
        kind = loop_kind(node)
        inner = self.inside(loops, kind)
        self.loops = self.loops or not f.index
        if kind in _UNIT_KINDS:
            end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
            f.loops.append(LoopFact(kind.value, node.lineno, node.col_offset, end_line, end_column))
        if isinstance(node, ast.While):
            self.expr(node.test, f, inner, guard)
        else:
            self.expr(node.iter, f, loops, guard)
            self.iterate(node.target, node.iter, f)
        self.block(node.body, f, inner, guard)
        self.block(node.orelse, f, loops, guard)

    def inside(self, loops: tuple[str, ...], kind: LoopKind) -> tuple[str, ...]:
        if kind in (LoopKind.FIXED, LoopKind.RETRIES):
            return loops
        grown = (*loops, kind.value)
        return self.interned.setdefault(grown, grown)  # type: ignore[return-value]

    def iterate(self, target: ast.expr, iterable: ast.expr, f: _Function) -> None:
        """Bind a loop's target to the items of what it goes over."""
        if isinstance(iterable, ast.Call):
            name = iterable.func.attr if isinstance(iterable.func, ast.Attribute) else getattr(iterable.func, "id", "")
            pair = isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == 2
            if name == "enumerate" and iterable.args and pair:
                assert isinstance(target, (ast.Tuple, ast.List))
                self.bind(target.elts[0], UNKNOWN, f)
                self.iterate(target.elts[1], iterable.args[0], f)
                return
            if name == "zip" and isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(iterable.args):
                for part, arg in zip(target.elts, iterable.args, strict=True):
                    self.iterate(part, arg, f)
                return
            if (
                name in ("items", "named_children", "named_modules")
                and pair
                and isinstance(iterable.func, ast.Attribute)
            ):
                assert isinstance(target, (ast.Tuple, ast.List))
                self.bind(target.elts[0], UNKNOWN, f)
                self.iterate(target.elts[1], iterable.func.value, f)
                return
            if name in ("values", "children") and isinstance(iterable.func, ast.Attribute):
                self.iterate(target, iterable.func.value, f)
                return
        ref = self.ref(iterable, f)
        self.bind_item(target, ref, f)

    def bind_item(self, target: ast.expr, container: Ref, f: _Function) -> None:
        item = UNKNOWN if container == UNKNOWN else self.intern(("[]", container))
        if isinstance(target, ast.Name):
            f.env[target.id] = item
            if not f.index:
                self.names[target.id] = None
        else:
            self.bind(target, UNKNOWN, f)

    def returned(self, node: ast.expr, f: _Function, loops: tuple[str, ...], guard: int) -> None:
        self.expr(node, f, loops, guard)
        if len(f.returns) < 4:
            ref = self.ref(node, f)
            if ref != UNKNOWN:
                f.returns.append(ref)

    def imported(self, node: ast.Import | ast.ImportFrom, f: _Function) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                module = alias.name if alias.asname else bound
                self.imports.append(ImportFact(bound, 0, module, None, f.index))
                if not alias.asname and "." in alias.name:
                    self.imports.append(ImportFact("", 0, alias.name, None, f.index))
                self.library(bound, alias.name, f)
            return
        module = node.module or ""
        for alias in node.names:
            bound = alias.asname or alias.name
            self.imports.append(ImportFact(bound, node.level, module, alias.name, f.index))
            if node.level == 0 and alias.name != "*":
                self.library(bound, module, f)

    def library(self, bound: str, module: str, f: _Function) -> None:
        """Remember names of libraries whose functions never call back into the project."""
        if module.partition(".")[0] in LIBRARIES:
            self.libraries.add(bound)
        if f.index:
            f.env.pop(bound, None)

    # expressions ---------------------------------------------------------------------------------------------------

    def expr(self, root: ast.expr, f: _Function, loops: tuple[str, ...], guard: int) -> None:
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
            elif kind is ast.Lambda:
                function = self.define(node, f, -1, f.scope)  # type: ignore[arg-type]
                lambda_ref: Ref = ("f", function.index)
                fact = CallFact(node.lineno, node.col_offset, lambda_ref, loops, guard | GUARD_REFERENCE)  # type: ignore[attr-defined]
                f.calls.append(fact)
            elif kind in _COMPREHENSIONS:
                self.comprehension(node, f, loops, guard)  # type: ignore[arg-type]
            elif kind is ast.NamedExpr:
                stack.append(node.value)  # type: ignore[attr-defined]
                self.bind(node.target, self.ref(node.value, f), f)  # type: ignore[attr-defined]
            else:
                stack += child_nodes(node)
        self.nodes += count

    def choice(self, node: ast.IfExp, f: _Function, loops: tuple[str, ...], guard: int) -> None:
        self.expr(node.test, f, loops, guard)
        self.expr(node.body, f, loops, guard | self.guard_of(node.test, True, ()))
        self.expr(node.orelse, f, loops, guard | self.guard_of(node.test, False, ()))

    def comprehension(self, node: ast.expr, f: _Function, loops: tuple[str, ...], guard: int) -> None:
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

    def call(self, node: ast.Call, f: _Function, loops: tuple[str, ...], guard: int) -> None:
        func = node.func
        attribute = func.attr if type(func) is ast.Attribute else ""
        if attribute:
            if attribute in ("append", "add", "insert", "extend") and node.args:
                item = self.ref(node.args[-1], f)
                if item != UNKNOWN:
                    self.grow(func.value, item, f)  # type: ignore[attr-defined]
            elif attribute in ("register_modules", "add_module", "register_module"):
                self.registered(node, f)
        if attribute not in METHODS:
            callee = self.ref(func, f)
            if callee != UNKNOWN or attribute:
                if callee == UNKNOWN:
                    callee = self.intern((".", UNKNOWN, attribute))
                f.calls.append(CallFact(node.lineno, node.col_offset, callee, loops, guard))
        name = attribute or (func.id if type(func) is ast.Name else "")
        start = GUARD_START if name in _STARTERS else 0
        for arg in node.args:
            self.reference(arg, f, loops, guard | start)
        for keyword in node.keywords:
            self.reference(keyword.value, f, loops, guard | start)

    def reference(self, arg: ast.expr, f: _Function, loops: tuple[str, ...], guard: int) -> None:
        """A function handed on as an argument may be called there."""
        if type(arg) is ast.Name:
            ref = f.env.get(arg.id)
            if ref is None:
                if arg.id in BUILTINS or arg.id in self.libraries or (f.index and arg.id in f.env):
                    return
                ref = self.outer_name(arg.id, f)
            if isinstance(ref, tuple) and ref[0] != "f":
                return
        elif type(arg) is ast.Attribute and type(arg.value) is ast.Name and f.env.get(arg.value.id) == SELF:
            holder = self.class_of(f)
            if holder is None or not any(name == arg.attr for name, _ in holder.methods):
                return
            ref = self.intern((".", SELF, arg.attr))
        elif type(arg) is ast.Call and type(arg.func) in (ast.Name, ast.Attribute):
            name = arg.func.attr if isinstance(arg.func, ast.Attribute) else arg.func.id  # type: ignore[attr-defined]
            if name == "partial" and arg.args:
                self.reference(arg.args[0], f, loops, guard)
            return
        else:
            return
        if ref != UNKNOWN:
            f.calls.append(CallFact(arg.lineno, arg.col_offset, ref, loops, guard | GUARD_REFERENCE))

    def registered(self, node: ast.Call, f: _Function) -> None:
        """``self.register_modules(unet=unet)``, ``self.add_module("x", X())`` set attributes."""
        holder = self.class_of(f)
        if holder is None:
            return
        for keyword in node.keywords:
            if keyword.arg is not None and (ref := self.ref(keyword.value, f)) != UNKNOWN:
                holder.attributes.append((keyword.arg, f.index, ref))
        if len(node.args) == 2 and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            ref = self.ref(node.args[1], f)
            if ref != UNKNOWN:
                holder.attributes.append((node.args[0].value, f.index, ref))

    def name_ref(self, node: ast.expr, f: _Function) -> Ref:
        """As :meth:`ref`, with the names of libraries kept: bases and decorators matter by name."""
        text = _chain(node)
        if text is None or (f.index and text.partition(".")[0] in f.env):
            return self.ref(node, f)
        return text

    # references ----------------------------------------------------------------------------------------------------

    def intern(self, ref: Ref) -> Ref:
        return self.interned.setdefault(ref, ref)  # type: ignore[return-value]

    def either(self, a: Ref, b: Ref) -> Ref:
        parts: dict[Ref, None] = {}
        for ref in (a, b):
            for part in ref[1:] if isinstance(ref, tuple) and ref[0] == "|" else (ref,):
                parts[part] = None  # type: ignore[index]
        if len(parts) > _MAX_DEPTH:
            return a
        return self.intern(("|", *parts)) if len(parts) > 1 else a

    def outer_name(self, name: str, f: _Function) -> Ref:
        """A name that is not local: of a function around, of the module, or unknown."""
        current = f.outer
        while current is not None and current.index:
            known = current.env.get(name)
            if known is not None:
                return known
            current = current.outer
        return UNKNOWN if name in BUILTINS or name in self.libraries else name

    def ref(self, node: ast.expr, f: _Function, depth: int = 0) -> Ref:
        """What an expression refers to."""
        kind = type(node)
        if depth > _MAX_DEPTH:
            return UNKNOWN
        if kind is ast.Name:
            name: str = node.id  # type: ignore[attr-defined]
            known = f.env.get(name) if f.index else None
            return known if known is not None else self.outer_name(name, f)
        if kind is ast.Attribute:
            attr: str = node.attr  # type: ignore[attr-defined]
            base = self.ref(node.value, f, depth + 1)  # type: ignore[attr-defined]
            if base == UNKNOWN:
                return UNKNOWN
            if type(base) is str:
                return f"{base}.{attr}"
            return self.intern((".", base, attr))
        if kind is ast.Call:
            return self.call_ref(node, f, depth)  # type: ignore[arg-type]
        if kind is ast.Subscript:
            base = self.ref(node.value, f, depth + 1)  # type: ignore[attr-defined]
            if base == UNKNOWN or type(node.slice) is ast.Slice:  # type: ignore[attr-defined]
                return base
            return self.intern(("[]", base))
        if kind is ast.Await or kind is ast.Starred or kind is ast.NamedExpr:
            return self.ref(node.value, f, depth + 1)  # type: ignore[attr-defined]
        if kind is ast.IfExp:
            return self.one_of((node.body, node.orelse), f, depth)  # type: ignore[attr-defined]
        if kind is ast.BoolOp:
            return self.one_of(node.values, f, depth)  # type: ignore[attr-defined]
        if kind is ast.List or kind is ast.Tuple or kind is ast.Set:
            return self.container(node.elts, f, depth)  # type: ignore[attr-defined]
        if kind is ast.Dict:
            return self.container([v for v in node.values if v is not None], f, depth)  # type: ignore[attr-defined]
        if kind is ast.ListComp or kind is ast.GeneratorExp:
            return self.container([node.elt], f, depth)  # type: ignore[attr-defined]
        if kind is ast.DictComp:
            return self.container([node.value], f, depth)  # type: ignore[attr-defined]
        return UNKNOWN

    def one_of(self, nodes: Iterable[ast.expr], f: _Function, depth: int) -> Ref:
        found = UNKNOWN
        for node in nodes:
            ref = self.ref(node, f, depth + 1)
            if ref != UNKNOWN:
                found = ref if found == UNKNOWN else self.either(found, ref)
        return found

    def container(self, nodes: Sequence[ast.expr], f: _Function, depth: int) -> Ref:
        if len(nodes) > 64 or (nodes and isinstance(nodes[0], ast.Constant)):
            return UNKNOWN
        refs: dict[Ref, None] = {}
        for node in nodes:
            ref = self.ref(node, f, depth + 1)
            if ref != UNKNOWN:
                refs[ref] = None
        return self.intern(("{}", *refs)) if refs else UNKNOWN

    def call_ref(self, node: ast.Call, f: _Function, depth: int) -> Ref:
        func = node.func
        if type(func) is ast.Name and func.id == "super":
            return SUPER
        name = func.attr if type(func) is ast.Attribute else (func.id if type(func) is ast.Name else "")
        if name in _CONTAINERS:
            return self.one_of(node.args, f, depth + 1)
        if node.args and (name in _SAME_FUNCTIONS or (type(func) is ast.Attribute and _chain(func) in _SAME_FUNCTIONS)):
            return self.ref(node.args[0], f, depth + 1)
        if name == "cast" and len(node.args) == 2:
            return self.annotation(node.args[0], f)
        if name == "type" and node.args:
            inner = self.ref(node.args[0], f, depth + 1)
            return CLS if inner == SELF else UNKNOWN
        if type(func) is ast.Attribute:
            if name in _SAME_METHODS:
                return self.ref(func.value, f, depth + 1)
            if name.startswith("from_") or name in ("create", "build"):
                base = self.ref(func.value, f, depth + 1)
                return UNKNOWN if base == UNKNOWN else self.intern(("()", base))
            if name in METHODS:
                return UNKNOWN
        base = self.ref(func, f, depth + 1)
        return UNKNOWN if base == UNKNOWN else self.intern(("()", base))

    def annotation(self, node: ast.expr, f: _Function) -> Ref:
        """An instance of what an annotation names; optional and union types give the classes they hold."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return UNKNOWN
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            left, right = self.annotation(node.left, f), self.annotation(node.right, f)
            if UNKNOWN in (left, right):
                return right if left == UNKNOWN else left
            return self.either(left, right)
        if isinstance(node, ast.Subscript):
            name = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if name in ("Optional", "Union", "Annotated", "Final", "ClassVar"):
                found = UNKNOWN
                for part in parts:
                    ref = self.annotation(part, f)
                    if ref != UNKNOWN:
                        found = ref if found == UNKNOWN else self.either(found, ref)
                return found
            if name.lower() in ("list", "tuple", "sequence", "iterable", "dict", "mapping", "set", "iterator"):
                inner = self.annotation(parts[-1], f)
                return UNKNOWN if inner == UNKNOWN else self.intern(("{}", inner))
            if name.lower() == "type":
                inner = self.annotation(parts[0], f)
                return inner[1] if isinstance(inner, tuple) and inner[0] == "()" else UNKNOWN  # type: ignore[return-value]
            return self.annotation(node.value, f)
        if isinstance(node, (ast.Name, ast.Attribute)):
            root = node
            while isinstance(root, ast.Attribute):
                root = root.value  # type: ignore[assignment]
            if not isinstance(root, ast.Name) or root.id in self.libraries or root.id in BUILTINS:
                return UNKNOWN
            ref = self.ref(node, f)
            return UNKNOWN if ref == UNKNOWN else self.intern(("()", ref))
        return UNKNOWN


def first_line(node: ast.stmt) -> int:
    """The line on which a statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return decorators[0].lineno if decorators else node.lineno


def _chain(node: ast.expr) -> str | None:
    """``a.b.c`` as text; None for anything but a chain of names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def _literal_names(node: ast.expr) -> tuple[str, ...] | None:
    if isinstance(node, (ast.List, ast.Tuple)):
        return tuple(e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str))
    return None
