"""Who calls whom, over the whole project.

Nodes are functions (by gid) and, above them, *dispatch* nodes: one for a method name on a class stands for the method
and all its overrides, so that a call through a base class with a thousand subclasses stays one edge. Edges are plain
lists, since :mod:`.frequency` walks hundreds of thousands of them with its own arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from awp_lint.detector.semantics.constructing import Constructions
from awp_lint.detector.semantics.duck import COMMON_METHODS, DUCK_TYPES, DuckType, ducks
from awp_lint.detector.semantics.edges import Edge
from awp_lint.detector.semantics.facts import GUARD_REFERENCE, GUARD_SKIP, SELF, UNKNOWN, CallFact, Ref
from awp_lint.detector.semantics.gating import Gates, Unresolved
from awp_lint.detector.semantics.index import Entity, Index
from awp_lint.detector.semantics.resolve import INSTANCES, Resolver, Thing
from awp_lint.detector.semantics.stopwords import METHODS
from awp_lint.detector.semantics.switches import Switches

MODULE_BASES = frozenset(("torch.nn.Module", "torch.nn.modules.module.Module", "torch.jit.ScriptModule"))
_MANY = 8  # derived classes

_HOST_CLASS = re.compile(r"C[Pp][Uu](?![a-z])")
_LIBRARY_MODULES = ("transformers.", "diffusers.", "lightning.", "pytorch_lightning.", "timm.")


class CallGraph:
    """``edges[node]`` are the calls that a node makes; nodes from ``len(index.functions)`` on are dispatch nodes and,
    after them, parts of functions. ``real[node]`` is the function that a node is (a part of), -1 for dispatch nodes."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.resolver = Resolver(index)
        self.edges: list[list[Edge]] = [[] for _ in index.functions]
        self.targets: dict[tuple[int, int], tuple[int, ...]] = {}  # (gid, number of the call) → nodes
        self._dispatch: dict[tuple[int, str], int] = {}
        self._narrowed: dict[tuple[int, ...], int] = {}  # dispatch nodes of the functions that a call fits
        self._unresolved = Unresolved()
        self._sources: dict[int, list[tuple[int, int]]] | None = None
        self._ducks: dict[tuple[int, str, int], int | None] = {}
        self._is_module = [self._module(cid) for cid in range(len(index.classes))]
        self._families = self._method_families()
        self._by_class_name: dict[int, list[int]] = {}
        self._definers: dict[str, list[int]] = {}
        for cid, fact in enumerate(index.classes):
            for name, _ in fact.methods:
                self._definers.setdefault(name, []).append(cid)
        for gid, function in enumerate(index.functions):
            for number, call in enumerate(function.calls):
                self._call(gid, number, call)
            self._properties(gid)
            self._wrappers(gid)
        self.real = [*range(len(index.functions)), *[-1] * (len(self.edges) - len(index.functions))]
        constructions = Constructions(index, self.edges, self._unresolved, self.is_module)
        self.switches = Switches(index, constructions.defaults)
        self.gates = Gates(
            index.functions, index.function_file, self.edges, self._unresolved, self.switches.off, self._is_model
        )
        self.gates.build()
        for part in self.gates.nodes:
            self.real.append(part[0])

    def _module(self, cid: int) -> bool:
        names = self.index.base_names(cid)
        if not names.isdisjoint(MODULE_BASES):
            return True
        for name in names:
            short = name.rpartition(".")[2]
            if name.startswith("torch.nn.") and short[:1].isupper():
                return True
            if name.startswith(_LIBRARY_MODULES) and (
                "PreTrainedModel" in short or "For" in short or short == "ModelMixin" or short.endswith("Layer")
            ):
                return True
        return False

    def _is_model(self, gid: int) -> bool:
        """Whether a function is the ``forward`` of a model of transformers."""
        function = self.index.functions[gid]
        if function.cls < 0 or not function.qualname.endswith(".forward"):
            return False
        names = self.index.base_names(self.index.first_class[self.index.function_file[gid]] + function.cls)
        return any(name.endswith("PreTrainedModel") for name in names)

    def is_module(self, cid: int) -> bool:
        """Whether instances of the class are nn.Modules."""
        return self._is_module[cid]

    def _method_families(self) -> dict[str, int | None]:
        """Method names that only one class and its descendants define, to that class; None where several do."""
        index = self.index
        found: dict[str, int | None] = {}
        for cid, fact in enumerate(index.classes):
            above = index.mro(cid)[1:]
            for name, _ in fact.methods:
                if name in COMMON_METHODS or name.startswith("__"):
                    continue
                if any(index.own_method(base, name) is not None for base in above):
                    continue
                found[name] = None if name in found else cid
        return found

    # calls ---------------------------------------------------------------------------------------------------------

    def _call(self, gid: int, number: int, call: CallFact) -> None:
        callee = call.callee
        if callee[0] == "." and callee[1] == UNKNOWN:
            nodes = self._by_family(str(callee[2]))
            assumed = True
        else:
            nodes = self._nodes_of(gid, callee)
            assumed = False
            if not nodes and callee[:2] == (".", SELF) and callee[2] in METHODS:
                return  # a library's, which the class inherits
            if not nodes and not call.guard & GUARD_REFERENCE:
                nodes = self._by_name(gid, callee)
                assumed = True
        if not nodes:
            if not call.guard & GUARD_SKIP:
                self._unresolved.note(self.index.function_file[gid], call, _last_name(callee))
            return
        nodes = self._accepting(call, nodes)
        self._link(gid, nodes, number, call.loops, call.guard, assumed)
        if not call.guard & GUARD_REFERENCE:
            self.targets[gid, number] = nodes

    def _accepting(self, call: CallFact, nodes: tuple[int, ...]) -> tuple[int, ...]:
        """Without those of several functions that do not know a name that the call passes."""
        passed = [code[: code.index("=")] for code in call.passed if "=" in code[1:] and code[:1] != "*"]
        if not passed:
            return nodes
        functions = self.index.functions
        found: list[int] = []
        for node in nodes:
            targets = self.functions_of(node)
            kept = tuple(
                gid
                for gid in targets
                if not functions[gid].closed or all(name in functions[gid].parameters for name in passed)
            )
            if len(kept) == len(targets) or not kept:
                found.append(node)
            elif len(kept) == 1:
                found.append(kept[0])
            else:
                if kept not in self._narrowed:
                    self._narrowed[kept] = self._new_dispatch(kept)
                found.append(self._narrowed[kept])
        return tuple(dict.fromkeys(found))

    def _link(
        self, gid: int, nodes: Iterable[int], call: int, loops: tuple[str, ...], guard: int, assumed: bool
    ) -> None:
        edges = self.edges[gid]
        for node in nodes:
            edges.append(Edge(node, call, loops, guard, assumed))

    def _properties(self, gid: int) -> None:
        cid = self.index.class_of(gid)
        if cid is None:
            return
        for number, (name, loops, _, guard) in enumerate(self.index.functions[gid].properties):
            method = self.index.method(cid, name)
            if method is not None and method != gid and self.index.functions[method].binding == "property":
                self._link(gid, self._method_nodes(cid, name, "self"), -1 - number, loops, guard, False)

    def _wrappers(self, gid: int) -> None:
        """What decorators of the project put around a function runs as often as the function is called."""
        function = self.index.functions[gid]
        for decorator in function.decorators if function.kind != "module" else ():
            if decorator == UNKNOWN or (isinstance(decorator, str) and self._from_library(gid, decorator)):
                continue
            for thing in self.resolver.things(gid, decorator):
                if thing.kind == "function":
                    nodes = tuple(sorted(filter(self._wraps, self._returned(thing.number) - {gid})))
                    self._link(gid, nodes, -1 - len(function.properties), (), 0, False)

    def _wraps(self, gid: int) -> bool:
        """Whether a function calls what a function around it was given: what is decorated."""
        calls = self.index.functions[gid].calls
        own = gid - self.index.first_function[self.index.function_file[gid]]
        return any(isinstance(c.callee, tuple) and c.callee[0] == "p" and c.callee[1] != own for c in calls)

    def _returned(self, gid: int, depth: int = 0) -> set[int]:
        """The functions within a function that it returns, or that those return."""
        first = self.index.first_function[self.index.function_file[gid]]
        found: set[int] = set()
        for ref in self.index.functions[gid].returns:
            for part in ref[1:] if isinstance(ref, tuple) and ref[0] == "|" else (ref,):
                if isinstance(part, tuple) and part[0] == "f" and depth < 3:
                    inner = first + part[1]
                    found |= self._returned(inner, depth + 1) or {inner}
        return found

    def _nodes_of(self, gid: int, callee: Ref) -> tuple[int, ...]:
        if isinstance(callee, tuple) and callee[0] == ".":
            return self._member_nodes(self.resolver.things(gid, callee[1]), str(callee[2]))  # type: ignore[arg-type]
        if isinstance(callee, str) and "." in callee:
            found = self._callable_nodes(self.resolver.things(gid, callee))
            if found:
                return found
            base, _, name = callee.rpartition(".")
            return self._member_nodes(self.resolver.things(gid, base), name)
        return self._callable_nodes(self.resolver.things(gid, callee))

    def _member_nodes(self, base: Sequence[Thing], name: str) -> tuple[int, ...]:
        found: list[int] = []
        for thing in base:
            if thing.kind in INSTANCES:
                nodes = (
                    () if self._is_property(thing.number, name) else self._method_nodes(thing.number, name, thing.kind)
                )
                if not nodes:
                    nodes = self._callable_nodes(self.resolver.member(thing, name))
                found.extend(nodes)
            elif thing.kind == "items":
                found.extend(self._member_nodes(thing.held, name))
            else:
                found.extend(self._callable_nodes(self.resolver._members((thing,), name, 0)))
        return tuple(dict.fromkeys(found))

    def _is_property(self, cid: int, name: str) -> bool:
        """Whether an object gives what a property returns: it is that which ``x.name(…)`` calls."""
        method = self.index.method(cid, name)
        return method is not None and self.index.functions[method].binding == "property"

    def _callable_nodes(self, things: Sequence[Thing], depth: int = 0) -> tuple[int, ...]:
        """The functions that calling one of these runs."""
        found: list[int] = []
        for thing in things:
            if thing.kind == "function":
                found.append(thing.number)
            elif thing.kind == "class":
                for name in ("__init__", "__post_init__"):
                    method = self.index.method(thing.number, name)
                    if method is not None:
                        found.append(method)
            elif thing.kind in INSTANCES:
                found.extend(self._instance_nodes(thing.number, thing.kind))
            elif thing.kind == "items" and depth < 3:
                found.extend(self._callable_nodes(thing.held, depth + 1))
        return tuple(dict.fromkeys(found))

    def _instance_nodes(self, cid: int, kind: str) -> tuple[int, ...]:
        """Calling an object: its ``__call__``, and ``forward`` of a module."""
        found = self._method_nodes(cid, "__call__", kind)
        if self._is_module[cid] or (not found and kind != "exact"):
            found = (*found, *self._method_nodes(cid, "forward", kind, modules=True))
        return found

    def _method_nodes(self, cid: int, name: str, kind: str, modules: bool = False) -> tuple[int, ...]:
        """The method of a class; a dispatch node where derived classes may override it.

        An object that is only known by a base class with many descendants could be any of them, which says nothing:
        there only the base's own method counts. ``self`` of a base class really is all of them.
        """
        index = self.index
        if kind == "exact" and index.children[cid] and index.own_method(cid, name) is not None:
            below = index.below(cid)
            chosen = set(below).intersection(self._definers.get(name, ()))
            if self._left_to_host(cid, below, chosen):
                kind = "instance"  # declared as its base, which is none of those that run
        derived_count = len(index.below(cid)) if kind != "exact" else 0
        if derived_count == 0 or (kind == "instance" and derived_count > _MANY):
            method = index.method(cid, name)
            return () if method is None else (method,)
        node = self._dispatch.get((cid, name))
        if node is None:
            found = self._overrides(cid, name, modules)
            if not found:
                return ()
            if len(found) == 1:
                return tuple(found)
            node = self._new_dispatch(found)
            self._dispatch[cid, name] = node
        return (node,)

    def _overrides(self, cid: int, name: str, modules: bool) -> dict[int, None]:
        """The method as the class and all derived ones have it."""
        index = self.index
        found: dict[int, None] = {}
        own = index.method(cid, name)
        if own is not None:
            found[own] = None
        below = index.below(cid)
        if own is None and name == "forward":  # a mixin calls self(…): whatever its hosts inherit
            methods = [(derived, index.method(derived, name)) for derived in below]
        else:
            definers = self._definers.get(name, ())
            chosen = set(below).intersection(definers)
            methods = [(derived, index.own_method(derived, name)) for derived in sorted(chosen)]
            if own is not None and self._left_to_host(cid, below, chosen):
                del found[own]
        for derived, method in methods:
            if method is not None and (not modules or self._is_module[derived]):
                found[method] = None
        return found

    def _left_to_host(self, cid: int, below: Sequence[int], definers: set[int]) -> bool:
        """Whether all derived classes but those for the host define a method themselves in place of the base's."""
        index = self.index
        if not definers or not any(_HOST_CLASS.search(index.classes[c].qualname) for c in below):
            return False
        inheriting = [
            c for c in below if not index.children[c] and definers.isdisjoint(index.mro(c)[: index.mro(c).index(cid)])
        ]
        return bool(inheriting) and all(_HOST_CLASS.search(index.classes[c].qualname) for c in inheriting)

    def _new_dispatch(self, targets: Iterable[int]) -> int:
        node = len(self.edges)
        self.edges.append([Edge(target, 0, (), 0, False) for target in sorted(targets)])
        return node

    def functions_of(self, node: int) -> tuple[int, ...]:
        """The functions that a node stands for."""
        if node < len(self.index.functions):
            return (node,)
        return tuple(edge.target for edge in self.edges[node])

    def callers(self, gid: int) -> list[tuple[int, int]]:
        """Who calls a function: the functions, each with the guard of its call."""
        if self._sources is None:
            self._sources = {}
            for node, edges in enumerate(self.edges):
                for edge in edges:
                    self._sources.setdefault(edge.target, []).append((node, edge.guard))
        found: list[tuple[int, int]] = []
        for wanted in (gid, *self.gates.of_function.get(gid, ())):
            for node, guard in self._sources.get(wanted, ()):
                if self.real[node] >= 0:
                    found.append((self.real[node], guard))
                else:  # through a dispatch node: whoever calls that
                    above = self._sources.get(node, ())
                    found += [(self.real[source], guard) for source, guard in above if self.real[source] >= 0]
        return found

    def calling_files(self) -> dict[int, set[int]]:
        """For each function the files whose calls may run it."""
        count = len(self.index.functions)
        found: dict[int, set[int]] = {}
        above: dict[int, set[int]] = {}
        for node, gid in enumerate(self.real):
            if gid >= 0:
                file = self.index.function_file[gid]
                for edge in self.edges[node]:
                    (found if edge.target < count else above).setdefault(edge.target, set()).add(file)
        for node in sorted(above):
            if self.real[node] < 0:  # dispatch nodes lead to functions only; whoever calls a part calls the function
                for edge in self.edges[node]:
                    found.setdefault(edge.target, set()).update(above[node])
        return found

    # by name -------------------------------------------------------------------------------------------------------

    def _by_name(self, gid: int, callee: Ref) -> tuple[int, ...]:
        """What an unknown object's method is by the usual names, or by being the only method of that name."""
        if isinstance(callee, str):
            base, _, name = callee.rpartition(".")
            if not base:
                receiver, method = name, "__call__"
            else:
                receiver, method = base.rpartition(".")[2], name
                if self._from_library(gid, base):
                    return ()
        elif callee[0] == ".":
            receiver, method = _last_name(callee[1]), str(callee[2])  # type: ignore[arg-type]
            if isinstance(callee[1], str) and callee[1] != "?" and self._from_library(gid, callee[1]):
                return ()
        else:
            receiver, method = _last_name(callee), "__call__"
        file = self.index.function_file[gid]
        for number in ducks(receiver, method):
            node = self._duck(number, DUCK_TYPES[number], method, file)
            if node is not None:
                return (node,)
        return self._by_family(method)

    def _by_family(self, method: str) -> tuple[int, ...]:
        """The method of the only class, or family of classes, that has one of this name."""
        family = self._families.get(method)
        return self._method_nodes(family, method, "instance") if family is not None else ()

    def _from_library(self, gid: int, chain: str) -> bool:
        file = self.index.function_file[gid]
        scopes = self.index.scopes(file, gid - self.index.first_function[file])
        entity: Entity | None = self.index.resolve(file, chain.partition(".")[0], scopes)
        return entity is not None and entity.kind == "library"

    def _duck(self, number: int, duck: DuckType, method: str, file: int) -> int | None:
        key = (number, method, file if duck.same_file else -1)
        if key not in self._ducks:
            found: dict[int, None] = {}
            for cid in self._classes_named(number, duck):
                if duck.same_file and self.index.class_file[cid] != file:
                    continue
                names = ("__call__", "forward") if method == "__call__" else (method,)
                for name in names:
                    gid = self.index.own_method(cid, name)
                    if gid is not None:
                        found[gid] = None
            if not found:
                self._ducks[key] = None
            else:
                self._ducks[key] = next(iter(found)) if len(found) == 1 else self._new_dispatch(found)
        return self._ducks[key]

    def _classes_named(self, number: int, duck: DuckType) -> list[int]:
        known = self._by_class_name.get(number)
        if known is None:
            known = [
                cid
                for cid, fact in enumerate(self.index.classes)
                if duck.cls.fullmatch(fact.qualname.rpartition(".")[2])
            ]
            self._by_class_name[number] = known
        return known


def _last_name(ref: Ref) -> str:
    """The name that a reference ends in: ``scheduler`` of ``self.scheduler``, ``x`` of parameter ``x``."""
    if isinstance(ref, str):
        return ref.rpartition(".")[2]
    if ref[0] in (".", "p"):
        return str(ref[2])
    if ref[0] in ("()", "[]"):
        return _last_name(ref[1])  # type: ignore[arg-type]
    return "self" if ref[0] == "self" else ""
