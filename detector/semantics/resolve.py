"""What a symbolic reference may stand for: functions, classes, instances, containers of them.

Answers the questions of the call graph. It follows assignments to attributes, annotations, constructors and returned
objects; what none of them tells stays empty. Where references form a cycle the answer depends on where it is entered:
everything is to be asked in one fixed order.
"""

from __future__ import annotations

from typing import NamedTuple

from awp_lint.detector.semantics.facts import Ref
from awp_lint.detector.semantics.index import Entity, Index


class Thing(NamedTuple):
    """``kind``: "function" (gid), "class" (cid), "exact" (an object that is of just this cid), "instance" (one of it or
    of a derived class), "self" (as instance, in a method of the class), "super" (cid), "items" (a container; ``held``
    are its items), "library" (a name or object of a library), "module" (a file)."""

    kind: str
    number: int
    name: str = ""
    held: tuple[Thing, ...] = ()


INSTANCES = ("self", "instance", "exact")

Things = tuple[Thing, ...]

_MAX_THINGS = 24
_MAX_DEPTH = 12


class Resolver:
    """Evaluates references; all answers are remembered."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._memo: dict[tuple[int, Ref], Things] = {}
        self._attributes: dict[tuple[int, str], Things] = {}
        self._returns: dict[int, Things] = {}
        self._class_attributes: list[dict[str, list[tuple[int, Ref]]] | None] = [None] * len(index.classes)

    def things(self, gid: int, ref: Ref, depth: int = 0) -> Things:
        """What ``ref`` stands for in the scope of function ``gid``."""
        if ref == "?" or depth > _MAX_DEPTH:
            return ()
        key = (gid, ref)
        known = self._memo.get(key)
        if known is None:
            self._memo[key] = ()  # where a cycle closes
            known = self._memo[key] = self._limited(self._evaluate(gid, ref, depth))
        return known

    @staticmethod
    def _limited(found: Things) -> Things:
        return tuple(dict.fromkeys(found))[:_MAX_THINGS]

    def _evaluate(self, gid: int, ref: Ref, depth: int) -> Things:
        index = self.index
        file = index.function_file[gid]
        if isinstance(ref, str):
            entity = index.resolve(file, ref, index.scopes(file, gid - index.first_function[file]))
            if entity is None and "." in ref:
                base, _, name = ref.rpartition(".")
                return self._members(self.things(gid, base, depth + 1), name, depth)
            return self._of_entity(entity, depth)
        op = ref[0]
        if op == "self" or op == "cls" or op == "super":
            cid = index.class_of(gid)
            if cid is None:
                return ()
            return (Thing("class" if op == "cls" else op, cid),)
        if op == "f":
            return (Thing("function", index.first_function[file] + _number(ref[1])),)
        if op == "p":
            return self._parameter(index.first_function[file] + _number(ref[1]), str(ref[2]), depth)
        if op == "|":
            return tuple(t for part in ref[1:] for t in self.things(gid, part, depth + 1))  # type: ignore[arg-type]
        if op == "{}":
            held = tuple(t for part in ref[1:] for t in self.things(gid, part, depth + 1))  # type: ignore[arg-type]
            return (Thing("items", 0, "", self._limited(held)),) if held else ()
        inner = self.things(gid, ref[1], depth + 1)  # type: ignore[arg-type]
        if op == ".":
            return self._members(inner, str(ref[2]), depth)
        if op == "()":
            return tuple(t for thing in inner for t in self._called(thing, depth))
        return tuple(t for thing in inner for t in self._item(thing))

    def _of_entity(self, entity: Entity | None, depth: int) -> Things:
        if entity is None:
            return ()
        if entity.kind == "variable":
            ref = self.index.variable(entity)
            return self.things(self.index.first_function[entity.number], ref, depth + 1) if ref is not None else ()
        return (Thing(entity.kind, entity.number, entity.name if entity.kind == "library" else ""),)

    def _parameter(self, gid: int, name: str, depth: int) -> Things:
        function = self.index.functions[gid]
        for known, ref in function.annotations:
            if known == name:
                found = self.things(gid, ref, depth + 1)
                return tuple(_open(thing) for thing in found)
        return ()

    def _members(self, base: Things, name: str, depth: int) -> Things:
        found: list[Thing] = []
        for thing in base:
            if thing.kind in INSTANCES:
                found.extend(self.member(thing, name, depth + 1))
            elif thing.kind == "class":
                method = self.index.method(thing.number, name)
                if method is not None:
                    found.append(Thing("function", method))
                else:
                    found.extend(self.attribute(thing.number, name, depth + 1))
            elif thing.kind == "super":
                method = self._above(thing.number, name)
                if method is not None:
                    found.append(Thing("function", method))
            elif thing.kind == "module":
                found.extend(self._of_entity(self.index.member(thing.number, name), depth))
            elif thing.kind == "library":
                found.append(Thing("library", -1, f"{thing.name}.{name}"))
            elif thing.kind == "items" and name in ("values", "pop", "get"):
                found.append(thing)
        return tuple(found)

    def _above(self, cid: int, name: str) -> int | None:
        for current in self.index.mro(cid)[1:]:
            method = self.index.own_method(current, name)
            if method is not None:
                return method
        return None

    def member(self, thing: Thing, name: str, depth: int = 0) -> Things:
        """What ``x.name`` is for an object: where its class leaves it to the derived ones, what those set it to."""
        found = self.attribute(thing.number, name, depth)
        if thing.kind == "exact" or any(known.kind != "library" for known in found):
            return found
        return found + self._left_to_derived(thing.number, name, depth)

    def _left_to_derived(self, cid: int, name: str, depth: int) -> Things:
        below = self.index.below(cid)
        if len(below) > _MAX_THINGS or depth > _MAX_DEPTH:
            return ()
        assigned = (pair for current in below for pair in self._assigned(current).get(name, ()))
        found = (_closed(thing) for gid, ref in assigned for thing in self.things(gid, ref, depth + 1))
        return self._limited(tuple(thing for thing in found if thing.kind != "library"))

    def attribute(self, cid: int, name: str, depth: int = 0) -> Things:
        """What ``x.name`` is for an instance ``x`` of a class: a method, or what was assigned."""
        key = (cid, name)
        known = self._attributes.get(key)
        if known is not None:
            return known
        if depth > _MAX_DEPTH:
            return ()
        self._attributes[key] = ()
        method = self.index.method(cid, name)
        found: list[Thing] = []
        if method is not None:
            if self.index.functions[method].binding == "property":
                found.extend(self.returned(method, depth + 1))
            else:
                found.append(Thing("function", method))
        for current in self.index.mro(cid):
            for gid, ref in self._assigned(current).get(name, ()):
                found.extend(self.things(gid, ref, depth + 1))
        known = self._attributes[key] = self._limited(tuple(_closed(thing) for thing in found))
        return known

    def _assigned(self, cid: int) -> dict[str, list[tuple[int, Ref]]]:
        table = self._class_attributes[cid]
        if table is None:
            table = {}
            first = self.index.first_function[self.index.class_file[cid]]
            for name, function, ref in self.index.classes[cid].attributes:
                table.setdefault(name, []).append((first + function, ref))
            self._class_attributes[cid] = table
        return table

    def returned(self, gid: int, depth: int = 0) -> Things:
        """What a function returns."""
        known = self._returns.get(gid)
        if known is None:
            if depth > _MAX_DEPTH:
                return ()
            self._returns[gid] = ()
            found = [t for ref in self.index.functions[gid].returns for t in self.things(gid, ref, depth + 1)]
            known = self._returns[gid] = self._limited(tuple(_closed(thing) for thing in found))
        return known

    def _called(self, thing: Thing, depth: int) -> Things:
        if thing.kind == "class":
            return (Thing("exact", thing.number),)
        if thing.kind == "function":
            return self.returned(thing.number, depth + 1)
        if thing.kind == "items":  # an annotation ``list[X]`` stands for an instance already
            return (thing,)
        if thing.kind == "library":
            return (Thing("library", -1, thing.name),)
        return ()

    @staticmethod
    def _item(thing: Thing) -> Things:
        return thing.held if thing.kind == "items" else ()


def _open(thing: Thing) -> Thing:
    """An annotated object may be of a derived class."""
    if thing.kind == "exact":
        return thing._replace(kind="instance")
    if thing.kind == "items":
        return thing._replace(held=tuple(_open(held) for held in thing.held))
    return thing


def _closed(thing: Thing) -> Thing:
    """``self`` means the receiver only inside its method; returned or kept it is just some instance."""
    return thing._replace(kind="instance") if thing.kind == "self" else thing


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
