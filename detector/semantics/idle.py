"""Modules that are made and never run: their holders have no ``forward``, nor any method that could call them.

Serving engines keep such models in their tree after they have given them up. Nothing calls what they hold, and the
convention that a module's ``forward`` serves requests does not hold of it.
"""

from __future__ import annotations

from awp_lint.detector.semantics import entries
from awp_lint.detector.semantics.callgraph import MODULE_BASES, CallGraph


def held_in_vain(graph: CallGraph) -> set[int]:
    """The ``forward`` of modules that are made by such holders only."""
    index = graph.index
    made_by: dict[int, set[int]] = {}
    for node, gid in enumerate(graph.real):
        for edge in graph.edges[node] if gid >= 0 else ():
            if edge.target < len(index.functions) and edge.target != gid and _makes(graph, edge.target):
                made_by.setdefault(edge.target, set()).add(gid)
    found = set()
    for constructor, makers in made_by.items():
        cls = index.class_of(constructor)
        assert cls is not None
        forward = index.own_method(cls, "forward")
        if forward is None or index.children[cls] or not graph.is_module(cls):
            continue
        if all(_of_idle_holder(graph, gid) for gid in makers):
            found.add(forward)
    return found


def _makes(graph: CallGraph, gid: int) -> bool:
    function = graph.index.functions[gid]
    return function.cls >= 0 and function.qualname.endswith(".__init__")


def _of_idle_holder(graph: CallGraph, gid: int) -> bool:
    """Whether a function is the constructor of a module whose class has nothing that runs its parts."""
    index = graph.index
    cls = index.class_of(gid)
    if cls is None or not _makes(graph, gid) or index.children[cls] or not graph.is_module(cls):
        return False
    own = {index.qualified_class[c] for c in index.mro(cls)}
    if not index.base_names(cls) <= own | MODULE_BASES:
        return False  # what a library's base runs is not seen
    for current in index.mro(cls):
        first = index.first_function[index.class_file[current]]
        for name, number in index.classes[current].methods:
            if name != "__init__" and not entries.is_cold(index.functions[first + number]):
                return False
    return True
