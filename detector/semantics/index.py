"""The project's modules, names and classes, linked from the facts of its files.

Functions and classes get numbers that hold across files (``gid``, ``cid``); dotted names are canonical where the thing
is defined. Names that lead out of the project stay as dotted names of libraries. Every question has an answer for any
input: cyclic imports and inheritance cycles end where they close.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from awp_lint.detector.semantics.facts import ClassFact, FileFacts, FunctionFact, Ref
from awp_lint.detector.semantics.names import absolute_module

_NO_CUT = sys.maxsize


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file's facts with its place. ``path`` is what people see, ``real`` absolute; modules are unique in an index.
    ``whole``: the package that it belongs to was gone through as a whole."""

    path: str
    real: str
    module: str
    is_package: bool
    facts: FileFacts
    whole: bool = False


class Entity(NamedTuple):
    """What a name refers to. ``kind``: "module", "function", "class", "variable" or "library".

    ``number`` is the file of a module or variable, the gid of a function, the cid of a class; ``name`` the dotted name
    of a library thing, the plain name of a variable.
    """

    kind: str
    number: int
    name: str = ""


class Index:
    """All files of a project. The order of ``files`` does not matter."""

    def __init__(self, files: Sequence[IndexedFile]) -> None:
        self.files = tuple(sorted(files, key=lambda f: f.path))
        self.modules: dict[str, int] = {}
        self.functions: list[FunctionFact] = []
        self.function_file: list[int] = []
        self.classes: list[ClassFact] = []
        self.class_file: list[int] = []
        self.first_function: list[int] = []
        self.first_class: list[int] = []
        self._tails: dict[str, list[str]] = {}
        self._tables: list[dict[str, Entity | tuple[int, str, str | None]]] = []
        self._stars: list[list[tuple[int, str]]] = []
        self._local_imports: list[dict[tuple[int, str], tuple[int, str, str | None]]] = []
        self._member_memo: dict[tuple[int, str], Entity | None] = {}
        self._open_members: dict[tuple[int, str], int] = {}
        self._cut = _NO_CUT
        self._resolve_memo: dict[str, Entity] = {}
        for number, file in enumerate(self.files):
            self._add(number, file)
        self.qualified_function = [
            self._dotted(self.function_file[g], f.qualname) for g, f in enumerate(self.functions)
        ]
        self.qualified_class = [self._dotted(self.class_file[c], k.qualname) for c, k in enumerate(self.classes)]
        self.by_function = {name: gid for gid, name in reversed(list(enumerate(self.qualified_function)))}
        self.by_class = {name: cid for cid, name in reversed(list(enumerate(self.qualified_class)))}
        self._methods = [dict(k.methods) for k in self.classes]
        self._mro_memo: dict[int, tuple[int, ...]] = {}
        # A base may be an attribute of a class (``Outer.Inner``): while bases are resolved a class has its own only.
        self.bases: list[tuple[Entity, ...]] = [() for _ in self.classes]
        self.bases = [self._own_bases(cid) for cid in range(len(self.classes))]
        self._mro_memo.clear()
        self.children: list[list[int]] = [[] for _ in self.classes]
        for cid, bases in enumerate(self.bases):
            for base in bases:
                if base.kind == "class":
                    self.children[base.number].append(cid)
        self._names_memo: dict[int, frozenset[str]] = {}
        self._below_memo: dict[int, tuple[int, ...]] = {}

    def _add(self, number: int, file: IndexedFile) -> None:
        facts = file.facts
        self.modules.setdefault(file.module, number)
        self._tails.setdefault(file.module.rpartition(".")[2], []).append(file.module)
        base_f, base_c = len(self.functions), len(self.classes)
        self.first_function.append(base_f)
        self.first_class.append(base_c)
        self.functions.extend(facts.functions)
        self.function_file.extend([number] * len(facts.functions))
        self.classes.extend(facts.classes)
        self.class_file.extend([number] * len(facts.classes))
        table: dict[str, Entity | tuple[int, str, str | None]] = {}
        local: dict[tuple[int, str], tuple[int, str, str | None]] = {}
        stars: list[tuple[int, str]] = []
        for name, _ in facts.variables:
            table[name] = Entity("variable", number, name)
        for fact in facts.imports:
            if fact.name == "*":
                stars.append((fact.level, fact.module))
            elif fact.scope:
                local[fact.scope, fact.bound] = (fact.level, fact.module, fact.name)
            elif fact.bound:
                table.setdefault(fact.bound, (fact.level, fact.module, fact.name))
        for index, function in enumerate(facts.functions):
            if function.outer == 0 and function.cls < 0 and function.kind != "lambda":
                table[function.qualname] = Entity("function", base_f + index)
        for index, cls in enumerate(facts.classes):
            if cls.outer == 0 and "." not in cls.qualname:
                table[cls.qualname] = Entity("class", base_c + index)
        self._tables.append(table)
        self._stars.append(stars)
        self._local_imports.append(local)

    def _dotted(self, file: int, qualname: str) -> str:
        module = self.files[file].module
        return f"{module}.{qualname}" if module else qualname

    # modules and names ---------------------------------------------------------------------------------------------

    def module_number(self, name: str, importer: int | None = None) -> int | None:
        """The file of a module: by its name, beside the importing file (scripts), or below a source folder."""
        found = self.modules.get(name)
        if found is not None or not name:
            return found
        if importer is not None:
            here = self.files[importer]
            package = here.module if here.is_package else here.module.rpartition(".")[0]
            found = self.modules.get(f"{package}.{name}") if package else None
            if found is not None:
                return found
        tail = "." + name
        same = [m for m in self._tails.get(name.rpartition(".")[2], ()) if m.endswith(tail)]
        return self.modules[same[0]] if len(same) == 1 else None

    def _imported(self, file: int, level: int, module: str, name: str | None) -> Entity | None:
        here = self.files[file]
        base = absolute_module(here.module, here.is_package, level, module or None)
        if base is None:
            return None
        number = self.module_number(base, file if level == 0 else None)
        if name is None:
            return Entity("module", number, base) if number is not None else Entity("library", -1, base)
        if number is not None:
            found = self.member(number, name)
            if found is not None:
                return found
            return Entity("library", -1, f"{self.files[number].module}.{name}")
        below = self.module_number(f"{base}.{name}") if base else self.module_number(name)
        if below is not None:
            return Entity("module", below, self.files[below].module)
        return Entity("library", -1, f"{base}.{name}" if base else name)

    def member(self, file: int, name: str) -> Entity | None:
        """What a module-level name of a file refers to, imports followed to the definition; None when it has none."""
        key = (file, name)
        if key in self._member_memo:
            return self._member_memo[key]
        if key in self._open_members:  # an import cycle closes here: what depends on it is not to be remembered
            self._cut = min(self._cut, self._open_members[key])
            return None
        depth = self._open_members[key] = len(self._open_members)
        found = self._member(file, name)
        del self._open_members[key]
        if found is not None or self._cut >= depth:
            self._member_memo[key] = found
            self._cut = _NO_CUT if self._cut >= depth else self._cut
        return found

    def _member(self, file: int, name: str) -> Entity | None:
        entry = self._tables[file].get(name)
        if isinstance(entry, Entity):
            return self._followed(entry)
        if entry is not None:
            return self._imported(file, *entry)
        return self._through_stars(file, name) or self._submodule(file, name)

    def _followed(self, entity: Entity) -> Entity:
        """A variable that is only another name for something is that thing."""
        if entity.kind != "variable":
            return entity
        ref = self.variable(entity)
        if isinstance(ref, str):
            return self.resolve(entity.number, ref) or entity
        return entity

    def _through_stars(self, file: int, name: str) -> Entity | None:
        if name.startswith("__"):
            return None
        here = self.files[file]
        for level, module in self._stars[file]:
            base = absolute_module(here.module, here.is_package, level, module or None)
            number = self.module_number(base, file if level == 0 else None) if base is not None else None
            if number is None or number == file:
                continue
            exports = self.files[number].facts.exports
            if exports is not None and name not in exports:
                continue
            found = self.member(number, name)
            if found is not None and found.kind != "module":
                return found
        return None

    def _submodule(self, file: int, name: str) -> Entity | None:
        here = self.files[file]
        number = self.modules.get(f"{here.module}.{name}") if here.is_package else None
        return None if number is None else Entity("module", number, self.files[number].module)

    def resolve(self, file: int, dotted: str, scopes: Sequence[int] = ()) -> Entity | None:
        """What a chain of names in a file refers to. ``scopes``: functions around (the file's numbers), inner first."""
        root, _, rest = dotted.partition(".")
        found: Entity | None = None
        for scope in scopes:
            local = self._local_imports[file].get((scope, root))
            if local is not None:
                found = self._imported(file, *local)
                break
        if found is None:
            found = self.member(file, root)
        if found is None and scopes:
            found = self._nested_class(file, dotted)
            if found is not None:
                return found
        for part in rest.split(".") if rest else ():
            if found is None:
                return None
            found = self.attribute(found, part)
        return found

    def _nested_class(self, file: int, qualname: str) -> Entity | None:
        cid = self.by_class.get(self._dotted(file, qualname)) if hasattr(self, "by_class") else None
        return None if cid is None else Entity("class", cid)

    def attribute(self, entity: Entity, name: str) -> Entity | None:
        """``entity.name`` for modules, classes and library names."""
        if entity.kind == "module":
            return self.member(entity.number, name)
        if entity.kind == "library":
            return Entity("library", -1, f"{entity.name}.{name}")
        if entity.kind == "class":
            method = self.method(entity.number, name)
            if method is not None:
                return Entity("function", method)
            return self._nested_class(self.class_file[entity.number], f"{self.classes[entity.number].qualname}.{name}")
        return None

    def variable(self, entity: Entity) -> Ref | None:
        """What a module-level variable was bound to."""
        return dict(self.files[entity.number].facts.variables).get(entity.name)

    def dotted_of(self, entity: Entity) -> str:
        """Canonical dotted name."""
        if entity.kind == "function":
            return self.qualified_function[entity.number]
        if entity.kind == "class":
            return self.qualified_class[entity.number]
        if entity.kind == "variable":
            return self._dotted(entity.number, entity.name)
        return self.files[entity.number].module if entity.kind == "module" else entity.name

    def lookup(self, dotted: str) -> Entity:
        """The entity with an absolute dotted name, as seen from anywhere; a library name when it leads out."""
        known = self._resolve_memo.get(dotted)
        if known is None:
            known = self._resolve_memo[dotted] = self._lookup(dotted)
        return known

    def _lookup(self, dotted: str) -> Entity:
        gid = self.by_function.get(dotted)
        if gid is not None:
            return Entity("function", gid)
        cid = self.by_class.get(dotted)
        if cid is not None:
            return Entity("class", cid)
        parts = dotted.split(".")
        for length in range(len(parts), 0, -1):
            number = self.modules.get(".".join(parts[:length]))
            if number is None:
                continue
            found: Entity | None = Entity("module", number, self.files[number].module)
            for part in parts[length:]:
                found = self.attribute(found, part) if found is not None else None
            return found if found is not None else Entity("library", -1, dotted)
        return Entity("library", -1, dotted)

    # classes -------------------------------------------------------------------------------------------------------

    def _own_bases(self, cid: int) -> tuple[Entity, ...]:
        fact = self.classes[cid]
        file = self.class_file[cid]
        found = []
        for ref in fact.bases:
            if isinstance(ref, str):
                entity = self.resolve(file, ref, self.scopes(file, fact.outer))
                if entity is not None and entity.kind in ("class", "library") and entity != Entity("class", cid):
                    found.append(entity)
        return tuple(found)

    def scopes(self, file: int, function: int) -> tuple[int, ...]:
        """The functions around a place, as the file's own numbers, inner first, the module left out."""
        found = []
        functions = self.files[file].facts.functions
        while function > 0:
            found.append(function)
            function = functions[function].outer
        return tuple(found)

    def mro(self, cid: int) -> tuple[int, ...]:
        """The project's classes that an instance looks attributes up in, in order; library classes left out."""
        known = self._mro_memo.get(cid)
        if known is None:
            order: dict[int, None] = {}
            pending = [cid]
            while pending:
                current = pending.pop(0)
                if current in order:
                    continue
                order[current] = None
                pending.extend(base.number for base in self.bases[current] if base.kind == "class")
            known = self._mro_memo[cid] = tuple(order)
        return known

    def base_names(self, cid: int) -> frozenset[str]:
        """Dotted names of the class, and of all its bases in the project and in libraries."""
        known = self._names_memo.get(cid)
        if known is None:
            names = {self.qualified_class[c] for c in self.mro(cid)}
            for current in self.mro(cid):
                names.update(base.name for base in self.bases[current] if base.kind == "library")
            known = self._names_memo[cid] = frozenset(names)
        return known

    def method(self, cid: int, name: str) -> int | None:
        """The method that an instance of exactly this class runs."""
        for current in self.mro(cid):
            index = self._methods[current].get(name)
            if index is not None:
                return self.first_function[self.class_file[current]] + index
        return None

    def own_method(self, cid: int, name: str) -> int | None:
        """The method as this class itself defines it."""
        index = self._methods[cid].get(name)
        return None if index is None else self.first_function[self.class_file[cid]] + index

    def below(self, cid: int) -> tuple[int, ...]:
        """All classes derived from it, itself left out."""
        known = self._below_memo.get(cid)
        if known is None:
            seen: dict[int, None] = {}
            pending = list(self.children[cid])
            while pending:
                current = pending.pop()
                if current not in seen and current != cid:
                    seen[current] = None
                    pending.extend(self.children[current])
            known = self._below_memo[cid] = tuple(sorted(seen))
        return known

    def class_of(self, gid: int) -> int | None:
        """The class whose method the function is, or whose method it is nested in."""
        file = self.function_file[gid]
        functions = self.files[file].facts.functions
        index = gid - self.first_function[file]
        while index >= 0:
            if functions[index].cls >= 0:
                return self.first_class[file] + functions[index].cls
            index = functions[index].outer
        return None

    def imports(self) -> Iterator[tuple[int, int]]:
        """Pairs (importing file, imported file)."""
        for number, file in enumerate(self.files):
            for fact in file.facts.imports:
                base = absolute_module(file.module, file.is_package, fact.level, fact.module or None)
                if base is None:
                    continue
                target = self.module_number(base, number if fact.level == 0 else None)
                if target is not None:
                    yield number, target
                if fact.name not in (None, "*") and (below := self.modules.get(f"{base}.{fact.name}")) is not None:
                    yield number, below
