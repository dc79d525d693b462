"""What statements make local names, attributes of self and module-level names refer to."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from awp_lint.detector.semantics.drafts import ClassDraft, FunctionDraft
from awp_lint.detector.semantics.facts import SELF, UNKNOWN, ImportFact, Ref
from awp_lint.detector.semantics.referring import MAX_DEPTH, Referring
from awp_lint.detector.semantics.stopwords import LIBRARIES


class Binding(Referring):
    """Keeps what names refer to while a file is walked."""

    def __init__(self) -> None:
        super().__init__()
        self.imports: list[ImportFact] = []
        self.roots: dict[str, str] = {}  # what the names mean that absolute imports bind, the first of each
        self.classes: list[ClassDraft] = []
        self.names: dict[str, None] = {}  # bound at module level by anything but imports

    def bind(self, target: ast.expr, ref: Ref, f: FunctionDraft, value: ast.expr | None = None) -> None:
        """Give a target what it now refers to."""
        if isinstance(target, ast.Name):
            known = f.env.get(target.id)
            if known is not None and known != ref and known != UNKNOWN and ref != UNKNOWN:
                ref = self.either(known, ref)
            f.env[target.id] = ref
            f.store(target.id, target.lineno)
            f.flags[target.id] = None
            if f.index:
                note_none(target.id, value, f)
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
            if isinstance(target.value, ast.Name) and target.value.id == f.rest:
                f.rest = ""
            if isinstance(target.value, ast.Attribute):
                self.write(target.value, f, self.intern(("{}", ref)) if ref != UNKNOWN else UNKNOWN)
            elif isinstance(target.value, ast.Name) and ref != UNKNOWN:
                self.grow(target.value, ref, f)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, UNKNOWN, f)

    def made_by_lambda(self, value: ast.expr | None, f: FunctionDraft) -> Ref:
        """``a, b, layers = make_layers(n, lambda …: Layer(…))``: containers of what the lambda makes."""
        if isinstance(value, ast.Call):
            for arg in value.args:
                if isinstance(arg, ast.Lambda) and isinstance(arg.body, ast.Call):
                    made = self.ref(arg.body, f)
                    if made != UNKNOWN:
                        return self.intern(("{}", made))
        return UNKNOWN

    def write(self, target: ast.Attribute, f: FunctionDraft, ref: Ref = UNKNOWN) -> None:
        """``self.x = …``."""
        if not isinstance(target.value, ast.Name) or f.env.get(target.value.id) != SELF:
            return
        f.writes[target.attr] = None
        holder = self.class_of(f)
        if ref[:2] == (".", SELF) and f.qualname.endswith(".__init__") and f.chosen_otherwise():
            return  # one of several methods, and not the one that is used by default
        if holder is not None and (ref != UNKNOWN or self.was_given(holder, target.attr)):
            holder.attributes.append((target.attr, f.index, ref))

    def was_given(self, holder: ClassDraft, attribute: str) -> bool:
        """Whether an attribute was made from a parameter before: then what else it becomes is told, though unknown."""
        self.asked.given.add(attribute)
        return any(name == attribute and ref[0] == "p" for name, _, ref in holder.attributes)

    def class_of(self, f: FunctionDraft) -> ClassDraft | None:
        current: FunctionDraft | None = f
        while current is not None:
            if current.cls >= 0:
                return self.classes[current.cls]
            current = current.outer
        return None

    def grow(self, container: ast.expr, ref: Ref, f: FunctionDraft) -> None:
        """``layers.append(Block())``, ``self.layers[i] = Block()``."""
        made = self.intern(("{}", ref))
        if isinstance(container, ast.Name):
            known = f.env.get(container.id, UNKNOWN)
            if isinstance(known, tuple) and known[0] == "{}" and len(known) <= MAX_DEPTH:
                made = known if ref in known else self.intern((*known, ref))
            if container.id in f.env:
                f.env[container.id] = made
        elif isinstance(container, ast.Attribute):
            self.write(container, f, made)

    def extended(self, node: ast.AugAssign, f: FunctionDraft) -> None:
        """``blocks += [Block()]``: what is known to be in the list that is added is in the other one then."""
        added = self.ref(node.value, f) if isinstance(node.op, ast.Add) else UNKNOWN
        if isinstance(added, tuple) and added[0] == "{}":
            for ref in added[1:]:
                assert isinstance(ref, (str, tuple))
                self.grow(node.target, ref, f)

    def merge(self, f: FunctionDraft, other: dict[str, Ref]) -> None:
        """Join the names of two branches."""
        env = f.env
        for name, ref in other.items():
            known = env.get(name)
            if known is None or known == UNKNOWN:
                env[name] = ref
            elif known != ref and ref != UNKNOWN:
                env[name] = self.either(known, ref)

    def iterate(self, target: ast.expr, iterable: ast.expr, f: FunctionDraft) -> None:
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

    def bind_item(self, target: ast.expr, container: Ref, f: FunctionDraft) -> None:
        item = UNKNOWN if container == UNKNOWN else self.intern(("[]", container))
        if isinstance(target, ast.Name):
            f.env[target.id] = item
            f.store(target.id, target.lineno)
            f.flags[target.id] = None
            if not f.index:
                self.names[target.id] = None
        else:
            self.bind(target, UNKNOWN, f)

    def imported(self, node: ast.Import | ast.ImportFrom, f: FunctionDraft) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                module = alias.name if alias.asname else bound
                self.imports.append(ImportFact(bound, 0, module, None, f.index))
                self.roots.setdefault(bound, module)
                if not alias.asname and "." in alias.name:
                    self.imports.append(ImportFact("", 0, alias.name, None, f.index))
                self.library(bound, alias.name, f)
            return
        module = node.module or ""
        for alias in node.names:
            bound = alias.asname or alias.name
            self.imports.append(ImportFact(bound, node.level, module, alias.name, f.index))
            if node.level == 0:
                self.roots.setdefault(bound, f"{module}.{alias.name}")
            if node.level == 0 and alias.name != "*":
                self.library(bound, module, f)

    def library(self, bound: str, module: str, f: FunctionDraft) -> None:
        """Remember names of libraries whose functions never call back into the project."""
        if module.partition(".")[0] in LIBRARIES:
            self.libraries.add(bound)
        if f.index:
            f.env.pop(bound, None)


def given(holder: ClassDraft, first: int | None = None) -> set[str]:
    """Those of the first attributes of a class, of all where none is said, that were made from a parameter."""
    return {name for name, _, ref in holder.attributes[:first] if ref[0] == "p"}


#: Methods of tensors that give tensors, and those that give several.
_OF_TENSORS = frozenset((
    "repeat", "expand", "unsqueeze", "squeeze", "reshape", "view", "flatten", "permute", "transpose", "contiguous",
    "to", "float", "half", "long", "bool", "clone", "detach", "repeat_interleave",
))  # fmt: skip
_PARTED = frozenset(("chunk", "split", "unbind", "topk"))
_NEVER_NONE = (ast.BinOp, ast.Compare, ast.List, ast.Dict, ast.Tuple, ast.ListComp, ast.JoinedStr)


def note_none(name: str, value: ast.expr | None, f: FunctionDraft) -> None:
    """Note whether what a local name is bound to may be None. Of what another call gives nothing is noted: a method
    that is called on it later tells."""
    kind = type(value)
    if kind is ast.Call:
        func = value.func  # type: ignore[union-attr]
        if type(func) is ast.Attribute and (func.attr in _OF_TENSORS or _of_torch(func)):
            f.solid.add(name)
        elif type(func) is ast.Attribute and func.attr in ("get", "pop"):
            f.vague.add(name)
    elif kind is ast.Name:
        (f.solid if value.id in f.solid else f.vague).add(name)  # type: ignore[union-attr]
    elif kind is ast.Subscript:
        inner = value.value  # type: ignore[union-attr]
        parted = type(inner) is ast.Call and type(inner.func) is ast.Attribute and inner.func.attr in _PARTED
        (f.solid if parted else f.vague).add(name)
    else:
        (f.solid if isinstance(value, _NEVER_NONE) else f.vague).add(name)


def _of_torch(func: ast.Attribute) -> bool:
    return type(func.value) is ast.Name and func.value.id == "torch"
