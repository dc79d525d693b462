"""How often each function of the project runs: paths propagated along calls from the entry points.

Propagation goes in rounds, each on the results of the round before, so that the outcome depends on the graph alone. A
function keeps the path that runs most often; the chain of calls that gave it explains it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from awp_lint.detector.finding import Frame
from awp_lint.detector.semantics import entries, paths
from awp_lint.detector.semantics.callgraph import CallGraph
from awp_lint.detector.semantics.edges import Edge
from awp_lint.detector.semantics.elsewhere import is_plain_form, runs_elsewhere
from awp_lint.detector.semantics.entries import Entry
from awp_lint.detector.semantics.facts import (
    GUARD_FIRST,
    GUARD_ONCE,
    GUARD_REFERENCE,
    GUARD_SKIP,
    GUARD_START,
    SELF,
    SUPER,
    FunctionFact,
)
from awp_lint.detector.semantics.idle import held_in_vain
from awp_lint.detector.semantics.index import Index
from awp_lint.detector.semantics.regions import beside_training, file_regions, is_template
from awp_lint.detector.semantics.values import Certainty
from awp_lint.detector.semantics.view import Frequency, Level, LoopKind, Region

_MODEL_LIBRARIES = frozenset(
    ("torch", "transformers", "diffusers", "vllm", "sglang", "onnxruntime", "tensorrt", "sentence_transformers", "timm")
)
#: Methods by which a model's own ``generate`` runs the whole model for each token.
_RUNS = re.compile(r"generate|forward|__call__|_?\w*(sample|search|decod)\w*")
_NOT_HEATING = Region.TEST | Region.TIMED | Region.TRAINING


class Reach(NamedTuple):
    """How often a node is entered. ``cold``: set-up code, in which loops do not count."""

    path: tuple[Level, ...]
    certainty: Certainty
    cold: bool

    @property
    def rank(self) -> tuple[int, bool, int, int, tuple[str, ...]]:
        """Larger runs more often, is surer of it, or says it shorter."""
        weight, names = _path_rank(self.path)
        return weight, not self.cold, int(self.certainty), -len(names), names


class Frequencies:
    """Frequencies of all functions of an index. ``entry_points`` are (function pattern, path) from the settings."""

    def __init__(self, graph: CallGraph, entry_points: Iterable[tuple[str, str]] = ()) -> None:
        self.graph = graph
        self.index: Index = graph.index
        self.reach: list[Reach | None] = [None] * len(graph.edges)
        self.caller: list[tuple[int, int] | None] = [None] * len(graph.edges)  # (node, number of the call)
        self.origin: dict[int, tuple[str, str]] = {}
        self._fixed: set[int] = set()
        self._regions = [file_regions(file.path) for file in self.index.files]
        self._templates = [is_template(file.path) for file in self.index.files]
        self._uses_torch = [_uses_torch(self.index, number) for number in range(len(self.index.files))]
        self._blocked = [self._does_not_heat(gid) for gid in range(len(self.index.functions))]
        self._cold = [entries.is_cold(f) for f in self.index.functions]
        self._setup = [entries.is_setup(f) for f in self.index.functions]
        self._cached = [entries.is_cached(f) for f in self.index.functions]
        self._first = [entries.is_first(f) for f in self.index.functions]
        self._halved = self._served_by_halves()
        self._aside = self._called_aside() | held_in_vain(graph)
        self._by_user(entry_points)
        self._propagate(self._contracts())
        self._propagate(self._conventions(uncalled_only=True))
        self._propagate(self._conventions(uncalled_only=False))
        self._propagate(self._called_by_unknown())

    # entry points --------------------------------------------------------------------------------------------------

    def _does_not_heat(self, gid: int) -> bool:
        function = self.index.functions[gid]
        path = self.index.files[self.index.function_file[gid]].path
        if self._templates[self.index.function_file[gid]] or runs_elsewhere(path, function.qualname):
            return True
        if function.qualname.endswith(".forward_native") and is_plain_form(function.qualname, self._class_names(gid)):
            return True
        found = Region(function.regions)
        found |= beside_training(self._regions[self.index.function_file[gid]], found)
        outer = function.outer
        functions = self.index.files[self.index.function_file[gid]].facts.functions
        while outer > 0:
            found |= Region(functions[outer].regions)
            outer = functions[outer].outer
        return bool(found & _NOT_HEATING)

    def _by_user(self, entry_points: Iterable[tuple[str, str]]) -> None:
        """Comments in the code and patterns of the settings decide before anything else."""
        patterns = [(pattern, path) for pattern, text in entry_points if (path := paths.parse(text)) is not None]
        for gid, function in enumerate(self.index.functions):
            path = paths.parse(function.awp) if function.awp else None
            for pattern, wanted in patterns:
                if _matches(self.index.qualified_function[gid], pattern):
                    path = wanted
            if path is not None:
                self.reach[gid] = Reach(path, Certainty.PROVEN, cold=not path)
                self._fixed.add(gid)
                self._blocked[gid] = False
                for node in self._parts(gid):
                    self.reach[node] = self.reach[gid]
                    self._fixed.add(node)

    def _class_names(self, gid: int) -> frozenset[str]:
        function = self.index.functions[gid]
        if function.cls < 0:
            return frozenset()
        return self.index.base_names(self.index.first_class[self.index.function_file[gid]] + function.cls)

    def _contracts(self) -> list[int]:
        found = sorted(self._fixed)
        for gid, function in enumerate(self.index.functions):
            if self._blocked[gid] or gid in self._fixed:
                continue
            decorators: tuple[str, ...] = ()
            if function.cls >= 0:
                cls = self.index.classes[self.index.first_class[self.index.function_file[gid]] + function.cls]
                decorators = tuple(d.rpartition(".")[2] for d in cls.decorators if isinstance(d, str))
            entry = entries.contract(function, self._class_names(gid), decorators)
            if entry is not None and function.qualname.endswith(".forward") and self._generates_by_parts(gid):
                entry = Entry((Level.REQUEST,), Certainty.ASSUMED)
            if entry is not None:
                found += self._enter(gid, entry)
        return found

    def _generates_by_parts(self, gid: int) -> bool:
        """Whether a class has a ``generate`` of its own that leaves the tokens to its parts: ``self.decoder.generate``,
        and never runs the whole model."""
        cls = self.index.class_of(gid)
        own = None if cls is None else self.index.own_method(cls, "generate")
        if own is None:
            return False
        refs = [call.callee for call in self.index.functions[own].calls]
        methods = [(ref[1], str(ref[2])) for ref in refs if isinstance(ref, tuple) and ref[0] == "."]
        whole = SELF in refs or any(base in (SELF, SUPER) and _RUNS.match(name) for base, name in methods)
        parts = any(base not in (SELF, SUPER) and name == "generate" for base, name in methods)
        return parts and not whole

    def _conventions(self, uncalled_only: bool) -> list[int]:
        """Functions that are not reached and of which convention says something: all, or those that nothing calls."""
        called: set[int] = set()
        if uncalled_only:
            for gid, edges in zip(self.graph.real, self.graph.edges, strict=True):
                if gid >= 0 and self._blocked[gid]:
                    continue
                called.update(edge.target for edge in edges if edge.target != gid and not edge.guard & GUARD_SKIP)
        found = []
        for gid, function in enumerate(self.index.functions):
            if self._blocked[gid] or gid in called or gid in self._halved or not self._unserved(gid):
                continue
            if gid in self._aside:
                continue
            file = self.index.function_file[gid]
            module = function.cls >= 0 and self.graph.is_module(self.index.first_class[file] + function.cls)
            entry = entries.convention(function, self._class_names(gid), module, self._uses_torch[file])
            if entry is not None:
                reach = self.reach[gid]
                # a script that runs a function leaves no doubt that it runs, only how often
                entry = entry if reach is None or module else entry._replace(certainty=reach.certainty)
                found += self._enter(gid, entry)
        return found

    def _served_by_halves(self) -> set[int]:
        """Methods ``forward`` of modules whose ``encode``, ``decode`` or ``inference`` others call: both halves in one
        only train, and so does what stands beside a method ``inference`` that does not use it."""
        index, real = self.index, self.graph.real
        halves: dict[int, int] = {}  # encode and decode, to their class
        found = set()
        for cid in range(len(index.classes)):
            forward = index.own_method(cid, "forward")
            if self.graph.is_module(cid) and forward is not None:
                infers = index.own_method(cid, "inference")
                if infers is not None and not self._leads_to(infers, forward, cid):
                    found.add(forward)
                for name in ("encode", "decode", "infer", "inference"):
                    half = index.own_method(cid, name)
                    if half is not None:
                        halves[half] = cid
        if not halves:
            return found
        sources: dict[int, list[int]] = {}
        for node, edges in enumerate(self.graph.edges):
            for edge in edges:
                if edge.target in halves or real[edge.target] < 0:
                    sources.setdefault(edge.target, []).append(node)
        for half, cid in halves.items():
            for node in sources.get(half, ()):
                gids = [real[node]] if real[node] >= 0 else [real[above] for above in sources.get(node, ())]
                if any(gid >= 0 and not self._blocked[gid] and index.class_of(gid) != cid for gid in gids):
                    forward = index.own_method(cid, "forward")
                    assert forward is not None
                    found.add(forward)
        return found

    def _leads_to(self, gid: int, target: int, cls: int) -> bool:
        """Whether a method calls another of its class, through its own methods too."""
        seen = {gid}
        waiting = [gid]
        while waiting:
            for edge in self.graph.edges[waiting.pop()]:
                real = self.graph.real[edge.target]
                if edge.target == target or real == target:
                    return True
                own = real < 0 or self.index.class_of(real) == cls
                if own and edge.target not in seen:
                    seen.add(edge.target)
                    waiting.append(edge.target)
        return False

    def _called_aside(self) -> set[int]:
        """Functions that are called, and only where training, errors or export run, or what is off by default, or by
        what only trains."""
        count = len(self.index.functions)
        live: set[int] = set()
        aside: set[int] = set()
        for node, edges in enumerate(self.graph.edges):
            for edge in edges:
                if node >= count and self.graph.real[node] < 0:
                    continue  # dispatch: as its own callers are
                off = node in self._halved or (node in self.graph.gates.shut and not self.graph.gates.callers[node])
                (aside if off or edge.guard & GUARD_SKIP else live).add(edge.target)
        for node in range(count, len(self.graph.edges)):
            if self.graph.real[node] >= 0:
                continue
            for edge in self.graph.edges[node]:
                if node in live or node not in aside:
                    live.add(edge.target)
                else:
                    aside.add(edge.target)
        return {gid for gid in aside - live if gid < count}

    def _unserved(self, gid: int) -> bool:
        """Whether nothing says more of a function than that a script runs it, outside of loops over its work."""
        reach = self.reach[gid]
        return reach is None or (not reach.path and not reach.cold and gid not in self._fixed)

    def _enter(self, gid: int, entry: Entry) -> list[int]:
        """Enter a function from outside, and all its parts but those that outside calls do not make run; the nodes."""
        nodes = [gid, *(node for node in self._parts(gid) if node not in self.graph.gates.shut)]
        for node in nodes:
            self.reach[node] = Reach(entry.path, entry.certainty, entry.cold)
            if entry.origin is not None:
                self.origin[node] = entry.origin
        return nodes

    def _parts(self, gid: int) -> list[int]:
        return self.graph.gates.of_function.get(gid, [])

    def _called_by_unknown(self) -> list[int]:
        """Parts of functions that run which only calls could make run of whose own frequency nothing is known."""
        found = []
        for node, callers in self.graph.gates.callers.items():
            reach = self.reach[self.graph.real[node]]
            if reach is None or self.reach[node] is not None:
                continue
            real = (self.graph.real[caller] for caller in callers)
            if any(gid >= 0 and self.reach[gid] is None and not self._blocked[gid] for gid in real):
                self.reach[node] = reach
                self.caller[node] = self.caller[self.graph.real[node]]
                found.append(node)
        return sorted(found)

    # propagation ---------------------------------------------------------------------------------------------------

    def _propagate(self, start: Sequence[int]) -> None:
        changed: Sequence[int] = start
        real = self.graph.real
        while changed:
            following: dict[int, tuple[Reach, int, int]] = {}
            for node in changed:
                reach = self.reach[node]
                if reach is None or (real[node] >= 0 and self._blocked[real[node]]):
                    continue
                for edge in self.graph.edges[node]:
                    target = edge.target
                    gid = real[target]
                    if target in self._fixed or (gid >= 0 and self._blocked[gid]):
                        continue
                    found = self._through(reach, edge, gid if gid >= 0 else None)
                    if found is None:
                        continue
                    found = self._without_return(found, target, node)
                    known = following[target][0] if target in following else self.reach[target]
                    if known is None or (found.rank > known.rank and not self._leads_back(target, node)):
                        following[target] = (found, node, edge.call)
            for target, (found, node, call) in following.items():
                self.reach[target] = found
                self.caller[target] = (node, call)
                self.origin.pop(target, None)
            changed = sorted(following)

    def _without_return(self, found: Reach, target: int, node: int) -> Reach:
        """A helper of ``generate`` that calls ``self.generate`` for some inputs enters a subclass's anew: no loop of
        the helper's heats it."""
        real = self.graph.real
        if real[target] < 0 or self.index.functions[real[target]].qualname.rpartition(".")[2] != "generate":
            return found
        seen: set[int] = set()
        current = node
        while current not in seen:
            seen.add(current)
            above = self.caller[current]
            if above is None:
                break
            current = above[0]
            reach = self.reach[current]
            gid = real[current]
            generates = gid >= 0 and self.index.functions[gid].qualname.endswith(".generate")
            if generates and reach is not None:
                return found._replace(path=reach.path)
        return found

    def _leads_back(self, target: int, node: int) -> bool:
        """Whether the calls that reach ``node`` went through ``target``: recursion does not heat."""
        seen: set[int] = set()
        current = node
        real = self.graph.real
        gid = real[target]
        while current not in seen:
            if current == target or (gid >= 0 and real[current] == gid):
                return True
            seen.add(current)
            above = self.caller[current]
            if above is None:
                return False
            current = above[0]
        return False

    def _through(self, reach: Reach, edge: Edge, target: int | None) -> Reach | None:
        """What a call hands on to the function it calls."""
        if edge.guard & GUARD_SKIP or LoopKind.EPOCHS.value in edge.loops:
            return None
        certainty = Certainty.ASSUMED if edge.assumed else Certainty.PROVEN
        if edge.guard & GUARD_REFERENCE and not edge.guard & GUARD_START:
            if not reach.path:
                return None  # a callback handed over at set-up: who calls it is not known
            certainty = Certainty.ASSUMED
        certainty = min(certainty, reach.certainty)
        if target is not None:
            if self._cold[target] and edge.assumed:
                return None
            once = self._setup[target] and len(reach.path) + len(edge.loops) > 1
            if once or self._cached[target] or self._builds_module(target):
                return Reach((), certainty, cold=True)
        if edge.guard & GUARD_ONCE:
            return Reach((), certainty, cold=True)
        first = edge.guard & GUARD_FIRST or (target is not None and self._first[target])
        if first and not reach.cold:
            reach = reach._replace(path=paths.first(reach.path))
        if reach.cold or not edge.loops:
            return reach if certainty is reach.certainty else reach._replace(certainty=certainty)
        return Reach(paths.extend(reach.path, (LoopKind(kind) for kind in edge.loops)), certainty, reach.cold)

    def _builds_module(self, gid: int) -> bool:
        """Constructors of modules make set-up state, wherever they are called."""
        function = self.index.functions[gid]
        if function.cls < 0 or not function.qualname.endswith(".__init__"):
            return False
        return self.graph.is_module(self.index.first_class[self.index.function_file[gid]] + function.cls)

    # answers -------------------------------------------------------------------------------------------------------

    def is_cold(self, gid: int) -> bool:
        """Set-up code, in which loops do not count."""
        reach = self.reach[gid]
        return reach is not None and reach.cold

    def heats(self, gid: int) -> bool:
        """Whether what the function calls may get hot by it: no test, benchmark or training code."""
        return not self._blocked[gid]

    def frequency(self, gid: int) -> Frequency:
        """How often the function is entered, with the calls that lead there, the entry point first."""
        reach = self.reach[gid]
        if reach is None:
            return paths.UNKNOWN
        frames = [Frame(library, 0, function) for library, function in self.came_from(gid)]
        for caller, call in self.calls_to(gid):
            file = self.index.files[self.index.function_file[caller]]
            function = self.index.functions[caller]
            frames.append(Frame(file.path, call_line(function, call), function.qualname))
        return Frequency(reach.path, reach.certainty, tuple(frames))

    def calls_to(self, gid: int) -> list[tuple[int, int]]:
        """The calls that lead to a function, the entry point's first: pairs (gid, number of the call)."""
        found: list[tuple[int, int]] = []
        real = self.graph.real
        seen = {gid}
        node = gid
        while (above := self.caller[node]) is not None and above[0] not in seen:
            node = above[0]
            seen.add(node)
            if real[node] >= 0:
                found.append((real[node], above[1]))
        return paths.shortened(found[::-1])

    def came_from(self, gid: int) -> tuple[tuple[str, str], ...]:
        """The library function that calls the entry point of those calls: (library, function), where there is one."""
        seen: set[int] = set()
        node = gid
        while (above := self.caller[node]) is not None and node not in seen:
            seen.add(node)
            node = above[0]
        return (self.origin[node],) if node in self.origin else ()


def call_line(function: FunctionFact, call: int) -> int:
    """The line of a call by its number, as edges count; that of the function for the wrappers of its decorators."""
    if call >= 0:
        return function.calls[call].line
    return function.properties[-1 - call][2] if -1 - call < len(function.properties) else function.line


@lru_cache(maxsize=4096)
def _path_rank(path: tuple[Level, ...]) -> tuple[int, tuple[str, ...]]:
    return paths.weight(path), tuple(level.value for level in path)


def _matches(name: str, pattern: str) -> bool:
    """Whether a dotted function name is meant: the whole name or its end, with wildcards."""
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, f"*.{pattern}")


def _uses_torch(index: Index, file: int) -> bool:
    return any(
        fact.level > 0 or fact.module.partition(".")[0] in _MODEL_LIBRARIES for fact in index.files[file].facts.imports
    )
