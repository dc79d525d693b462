"""What expressions refer to, as :data:`~awp_lint.detector.semantics.facts.Ref`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from awp_lint.detector.semantics.drafts import FunctionDraft
from awp_lint.detector.semantics.facts import CLS, SELF, SUPER, UNKNOWN, Ref
from awp_lint.detector.semantics.stopwords import BUILTINS, METHODS

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


class Asked:
    """What a function asks of the file around it, while it is walked."""

    __slots__ = ("given", "libraries", "methods", "roots")

    def __init__(self) -> None:
        self.libraries: set[str] = set()  # names: are they of libraries?
        self.roots: set[str] = set()  # names: what do they mean as imports?
        self.methods: set[str] = set()  # names: are they methods of the class?
        self.given: set[str] = set()  # attributes: were they made from a parameter before?


MAX_DEPTH = 6  # of a Ref: longer chains are unknown


class Referring:
    """Tells what expressions refer to where they stand in a function under construction."""

    def __init__(self) -> None:
        self.interned: dict[object, object] = {}
        self.libraries: set[str] = set()  # names of libraries, whose functions never call back into the project
        self.asked = Asked()  # by the function that is walked

    def is_library(self, name: str) -> bool:
        """Whether a name is that of a library, noted as asked."""
        self.asked.libraries.add(name)
        return name in self.libraries

    def name_ref(self, node: ast.expr, f: FunctionDraft) -> Ref:
        """As :meth:`ref`, with the names of libraries kept: bases and decorators matter by name."""
        text = chain(node)
        if text is None or (f.index and text.partition(".")[0] in f.env):
            return self.ref(node, f)
        return text

    def intern(self, ref: Ref) -> Ref:
        return self.interned.setdefault(ref, ref)  # type: ignore[return-value]

    def either(self, a: Ref, b: Ref) -> Ref:
        parts: dict[Ref, None] = {}
        for ref in (a, b):
            for part in ref[1:] if isinstance(ref, tuple) and ref[0] == "|" else (ref,):
                parts[part] = None  # type: ignore[index]
        if len(parts) > MAX_DEPTH:
            return a
        return self.intern(("|", *parts)) if len(parts) > 1 else a

    def outer_name(self, name: str, f: FunctionDraft) -> Ref:
        """A name that is not local: of a function around, of the module, or unknown."""
        current = f.outer
        while current is not None and current.index:
            known = current.env.get(name)
            if known is not None:
                return known
            current = current.outer
        return UNKNOWN if name in BUILTINS or self.is_library(name) else name

    def of_library(self, node: ast.expr, f: FunctionDraft) -> bool:
        """Whether a chain of names begins with a library: ``nn.functional`` of ``from torch import nn``."""
        while type(node) is ast.Attribute:
            node = node.value
        return type(node) is ast.Name and not (f.index and node.id in f.env) and self.is_library(node.id)

    def ref(self, node: ast.expr, f: FunctionDraft, depth: int = 0) -> Ref:
        """What an expression refers to."""
        kind = type(node)
        if depth > MAX_DEPTH:
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

    def one_of(self, nodes: Iterable[ast.expr], f: FunctionDraft, depth: int) -> Ref:
        found = UNKNOWN
        for node in nodes:
            ref = self.ref(node, f, depth + 1)
            if ref != UNKNOWN:
                found = ref if found == UNKNOWN else self.either(found, ref)
        return found

    def container(self, nodes: Sequence[ast.expr], f: FunctionDraft, depth: int) -> Ref:
        if len(nodes) > 64 or (nodes and isinstance(nodes[0], ast.Constant)):
            return UNKNOWN
        refs: dict[Ref, None] = {}
        for node in nodes:
            ref = self.ref(node, f, depth + 1)
            if ref != UNKNOWN:
                refs[ref] = None
        return self.intern(("{}", *refs)) if refs else UNKNOWN

    def call_ref(self, node: ast.Call, f: FunctionDraft, depth: int) -> Ref:
        func = node.func
        if type(func) is ast.Name and func.id == "super":
            return SUPER
        name = func.attr if type(func) is ast.Attribute else (func.id if type(func) is ast.Name else "")
        if name in _CONTAINERS:
            return self.one_of(node.args, f, depth + 1)
        if node.args and (name in _SAME_FUNCTIONS or (type(func) is ast.Attribute and chain(func) in _SAME_FUNCTIONS)):
            return self.ref(node.args[0], f, depth + 1)
        if name == "getattr" and len(node.args) > 1 and type(node.args[1]) is ast.Constant:
            base = self.ref(node.args[0], f, depth + 1)
            asked = node.args[1].value
            known = type(base) is not str and type(asked) is str
            return self.intern((".", base, asked)) if known else UNKNOWN
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

    def annotation(self, node: ast.expr, f: FunctionDraft) -> Ref:
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
            if not parts:  # tuple[()]
                return UNKNOWN
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
            if not isinstance(root, ast.Name) or root.id in BUILTINS or self.is_library(root.id):
                return UNKNOWN
            ref = self.ref(node, f)
            return UNKNOWN if ref == UNKNOWN else self.intern(("()", ref))
        return UNKNOWN


def chain(node: ast.expr) -> str | None:
    """``a.b.c`` as text; None for anything but a chain of names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None
