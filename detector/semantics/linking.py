"""Values across functions and files: deferred references followed, to a bounded depth.

Every answer is a function of the question and the summaries alone: a reference is unfolded at most :data:`DEPTH`
times, and what lies deeper counts as not said. So recursion ends, and the order of files and questions does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from awp_lint.detector.semantics.coding import Coded, decode
from awp_lint.detector.semantics.interpret import calls, objects, tensors
from awp_lint.detector.semantics.interpret.classes import instance
from awp_lint.detector.semantics.interpret.machine import Context
from awp_lint.detector.semantics.interpret.references import decode as arguments
from awp_lint.detector.semantics.interpret.references import split
from awp_lint.detector.semantics.summaries import (
    AttributeValues,
    Body,
    CallArguments,
    ClassValues,
    FileValues,
    FunctionValues,
    last_name,
)
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, Device, Kind, Value, join, make
from awp_lint.detector.semantics.view import Target

DEPTH = 7
MAX_SITES = 40  # call sites looked at for one parameter
MAX_BASES = 40
_TESTS = re.compile(r"(^|\.)(tests?|test_\w+|\w+_test|conftest|testing\w*)(\.|$)")


class Index(Protocol):
    """The half of ``Outside`` that the project index answers."""

    def canonical(self, dotted: str) -> str: ...

    def is_function(self, dotted: str) -> bool: ...

    def is_class(self, dotted: str) -> bool: ...

    def bases(self, cls: str) -> frozenset[str]: ...

    def method(self, cls: str, name: str) -> str | None: ...


class _Answer(NamedTuple):
    value: Value | None
    height: int  # levels of unfolding that it needed


class _Sites(NamedTuple):
    calls: tuple[CallArguments, ...]
    cut: bool  # whether deeper unfolding could find others
    height: int


class _ModuleCalls(NamedTuple):
    calls: dict[str, list[CallArguments]]  # by the dotted name of the forward that they run
    cut: bool
    height: int


class _Level:
    """An ``Outside`` whose value answers are unfolded one level less."""

    def __init__(self, linked: LinkedValues, depth: int) -> None:
        self._linked = linked
        self._depth = depth
        index = linked.index
        self.canonical = index.canonical
        self.is_function = index.is_function
        self.is_class = index.is_class
        self.bases = index.bases
        self.method = index.method

    def returns(self, function: str) -> Value | None:
        return self._linked.ask("r", function, "", self._depth)

    def attribute(self, cls: str, name: str) -> Value | None:
        return self._linked.ask("a", cls, name, self._depth)

    def parameter(self, function: str, name: str) -> Value | None:
        return self._linked.ask("p", function, name, self._depth)

    def global_value(self, dotted: str) -> Value | None:
        return self._linked.ask("g", dotted, "", self._depth)


class LinkedValues:
    """The value half of ``Outside`` for a whole project."""

    def __init__(self, files: Iterable[FileValues], index: Index, target: Target) -> None:
        self.index = index
        # an index with a call graph knows the modules whose calls may run a function
        self._calling: Callable[[str], frozenset[str]] | None = getattr(index, "calling_modules", None)
        self._files: dict[str, FileValues] = {}
        self._bodies: dict[str, Body] = {}
        self._callers: dict[str, list[str]] = {}
        self._final: dict[tuple[str, str, str], _Answer] = {}
        self._partial: dict[tuple[str, str, str, int], Value | None] = {}
        self._sites: dict[str, dict[str, list[CallArguments]]] = {}
        self._sites_by_function: dict[tuple[str, int], _Sites] = {}
        self._module_calls: dict[tuple[str, int], _ModuleCalls] = {}
        self._homes: dict[str, tuple[str, str]] = {}
        self._lineages: dict[str, tuple[str, ...]] = {}
        self._cut = False
        self._height = 0
        for file in sorted(files, key=lambda f: (f.module, f.packed)):
            if file.module in self._files:
                continue
            self._files[file.module] = file
            for name in file.called:
                self._callers.setdefault(name, []).append(file.module)
        self._contexts = [Context(_Level(self, depth), target) for depth in range(DEPTH + 1)]

    def _body(self, module: str) -> Body:
        body = self._bodies.get(module)
        if body is None:
            body = self._bodies[module] = self._files[module].unpack()
        return body

    def _home(self, dotted: str) -> tuple[Body, str] | None:
        """The file that a dotted name belongs to, and the rest of the name."""
        found = self._homes.get(dotted)
        if found is None:
            module = dotted
            while module:
                module = module.rpartition(".")[0]
                if module in self._files:
                    break
            found = self._homes[dotted] = (module, dotted[len(module) + 1 if module else 0 :])
        return (self._body(found[0]), found[1]) if found[0] in self._files else None

    def _function(self, dotted: str) -> FunctionValues | None:
        home = self._home(dotted)
        return None if home is None else home[0].functions.get(home[1])

    def _class(self, dotted: str) -> ClassValues | None:
        home = self._home(dotted)
        return None if home is None else home[0].classes.get(home[1])

    def _calls(self, module: str, name: str) -> list[CallArguments]:
        """The calls in a module of something with this last name."""
        sites = self._sites.get(module)
        if sites is None:
            sites = self._sites[module] = {}
            for call in self._body(module).calls:
                sites.setdefault(last_name(call.callee), []).append(call)
        return sites.get(name, [])

    # the questions ---------------------------------------------------------------------------------------------------

    def returns(self, function: str) -> Value | None:
        """What a project function returns."""
        return self.ask("r", function, "", DEPTH)

    def attribute(self, cls: str, name: str) -> Value | None:
        """What ``self.name`` holds in instances of a project class."""
        return self.ask("a", cls, name, DEPTH)

    def parameter(self, function: str, name: str) -> Value | None:
        """What the call sites pass, joined; None when no call site is known."""
        return self.ask("p", function, name, DEPTH)

    def global_value(self, dotted: str) -> Value | None:
        """What a module-level variable of the project holds."""
        return self.ask("g", dotted, "", DEPTH)

    def ask(self, what: str, owner: str, name: str, depth: int) -> Value | None:
        """Answer one question with at most ``depth`` levels of unfolding."""
        key = (what, owner, name)
        known = self._final.get(key)
        if known is not None and known.height <= depth:
            self._height = max(self._height, known.height)
            return known.value
        at = (what, owner, name, depth)
        if at in self._partial:
            self._cut = True
            return self._partial[at]
        if depth == 0:
            self._cut = True
            return None
        outer = self._cut, self._height
        self._cut, self._height = False, 0
        value = _ANSWERS[what](self, owner, name, depth - 1)
        if value == UNKNOWN:
            value = None
        height = self._height + 1
        if self._cut:
            self._partial[at] = value
        else:
            self._final[key] = _Answer(value, height)
        self._cut, self._height = outer[0] or self._cut, max(outer[1], height)
        return value

    # the answers -----------------------------------------------------------------------------------------------------

    def _returned(self, function: str, name: str, depth: int) -> Value | None:
        facts = self._function(function)
        if facts is None:
            return None
        values = [self.settle(decode(v), depth) for v in facts.returns]
        result = _meet(values)
        if facts.generator:
            held = None if result is None or result == UNKNOWN else result
            result = make(Kind.ITERATOR, element=held, certainty=Certainty.PROVEN)
        if facts.declared is None:
            return result
        return refine(result or UNKNOWN, self.settle(decode(facts.declared), depth))

    def _attribute(self, cls: str, name: str, depth: int) -> Value | None:
        for owner in self._lineage(cls):
            facts = self._class(owner)
            found = facts.attributes.get(name) if facts is not None else None
            if found is not None:
                value = self._assigned(found, depth)
                if value is not None and not found.set_up and not found.later:
                    value = self._constructed(owner, name, value, depth)
                if value is not None:
                    return value
        method = self.index.method(cls, name)
        if method is not None:
            getter = self._function(method)
            if getter is not None and getter.is_property:
                return self.ask("r", method, "", depth) or UNKNOWN
        return None

    def _constructed(self, cls: str, name: str, declared: Value, depth: int) -> Value:
        """A declared field, as of a dataclass, completed by what the class is made with where that is known."""
        short = cls.rpartition(".")[2]
        calls: list[CallArguments] = []
        for module in self._callers.get(short, ()):
            calls += [c for c in self._calls(module, short) if self.index.canonical(c.callee) == cls]
        if not calls or len(calls) > MAX_SITES:
            return declared
        result: Value | None = None
        for call in calls:
            passed = next((v for keyword, v in call.keywords if keyword == name), None)
            if passed is None:
                return declared
            value = self.settle(decode(passed), depth)
            result = value if result is None else join(result, value)
        if result is None or result.kind is not declared.kind:
            return declared
        return _assume(refine(result, declared))

    def _lineage(self, cls: str) -> tuple[str, ...]:
        """The class and its project bases, nearest first."""
        known = self._lineages.get(cls)
        if known is None:
            seen: dict[str, None] = {}
            queue = [cls]
            while queue and len(seen) < MAX_BASES:
                current = queue.pop(0)
                facts = None if current in seen else self._class(current)
                if facts is not None:
                    seen[current] = None
                    queue.extend(self.index.canonical(base) for base in facts.bases)
            known = self._lineages[cls] = tuple(seen)
        return known

    def _assigned(self, found: AttributeValues, depth: int) -> Value | None:
        set_up = self._some(found.set_up, depth)
        later = self._some(found.later, depth)
        if later is not None and set_up is not None and later != UNKNOWN and set_up != UNKNOWN:
            if later.on_device and set_up.kind is Kind.TENSOR:
                return _assume(later)  # what set-up made is a placeholder
            return join(set_up, later)
        value = set_up if later is None or later == UNKNOWN else later
        if (value is None or value == UNKNOWN) and found.declared is not None:
            declared = self.settle(decode(found.declared), depth)
            return None if declared.kind is Kind.NONE else declared
        if value is None and (found.set_up or found.later):
            return make(Kind.NONE, certainty=Certainty.ASSUMED)
        return value

    def _some(self, assigned: tuple[Coded, ...], depth: int) -> Value | None:
        """What the assignments but those of None hold, joined."""
        values = [decode(coded) for coded in assigned]
        return _meet([self._placed(self.settle(v, depth)) for v in values if v.kind is not Kind.NONE])

    def _placed(self, v: Value) -> Value:
        """A module held by another object goes where that object goes."""
        if v.kind is Kind.MODULE and v.device is Device.HOST:
            return make(Kind.MODULE, self._contexts[0].ambient, cls=v.cls, certainty=Certainty.ASSUMED)
        if v.kind in (Kind.SEQUENCE, Kind.MAPPING) and v.element is not None and v.element.kind is Kind.MODULE:
            return make(v.kind, element=self._placed(v.element), cls=v.cls, certainty=v.certainty)
        return v

    def _passed(self, function: str, name: str, depth: int) -> Value | None:
        facts = self._function(function)
        if facts is None:
            return None
        position = facts.parameters.index(name) if name in facts.parameters else None
        result: Value | None = None
        for call in self._sites_of(function, depth):
            passed = next((v for keyword, v in call.keywords if keyword == name), None)
            if passed is None and position is not None and position < len(call.positional):
                passed = call.positional[position]
            if passed is None:
                continue
            value = self.settle(decode(passed), depth)
            result = value if result is None else join(result, value)
            if result == UNKNOWN:
                return None
        if result is None:
            return None
        named = result.kind in (Kind.DEVICE, Kind.STRING) and result.device is Device.HOST
        if named and not self._called_outside_tests(function, depth):
            return None  # tests run on the host what others run elsewhere
        return _assume(result)

    def _called_outside_tests(self, function: str, depth: int) -> bool:
        short = function.rpartition(".")[2]
        sites = set(self._sites_of(function, depth))
        modules = (module for module in self._callers.get(short, ()) if not _TESTS.search(module))
        return any(call in sites for module in modules for call in self._calls(module, short))

    def _sites_of(self, function: str, depth: int) -> tuple[CallArguments, ...]:
        """The calls that reach a function; none where they are too many to say anything."""
        known = self._sites_by_function.get((function, depth))
        if known is None:
            outer = self._cut, self._height
            self._cut, self._height = False, 0
            short = function.rpartition(".")[2]
            found: list[CallArguments] = []
            calling = self._calling(function) if self._calling is not None else None
            for module in self._callers.get(short, ()):
                if calling is not None and module not in calling:
                    continue
                found += [c for c in self._calls(module, short) if self._reaches(c.callee, function, depth)]
            if short == "forward":
                found += self._forwards(function, depth)
            sites = tuple(found) if len(found) <= MAX_SITES else ()
            known = self._sites_by_function[function, depth] = _Sites(sites, self._cut, self._height)
            self._cut, self._height = outer
        self._cut = self._cut or known.cut
        self._height = max(self._height, known.height)
        return known.calls

    def _forwards(self, function: str, depth: int) -> list[CallArguments]:
        """Calls of modules, in the file that defines their class, that run this ``forward``."""
        home = self._home(function)
        if home is None:
            return []
        module = function[: len(function) - len(home[1]) - 1]
        known = self._module_calls.get((module, depth))
        if known is None:
            outer = self._cut, self._height
            self._cut, self._height = False, 0
            found: dict[str, list[CallArguments]] = {}
            targets: dict[str, str | None] = {}
            for call in home[0].calls:
                if call.callee not in targets:
                    targets[call.callee] = self._forward_of(call.callee, depth)
                target = targets[call.callee]
                if target is not None:
                    found.setdefault(target, []).append(call)
            known = self._module_calls[module, depth] = _ModuleCalls(found, self._cut, self._height)
            self._cut, self._height = outer
        self._cut = self._cut or known.cut
        self._height = max(self._height, known.height)
        return known.calls.get(function, [])

    def _forward_of(self, callee: str, depth: int) -> str | None:
        """The ``forward`` that calling a part of a module runs, where the callee is one."""
        if not callee.startswith("<"):
            return None
        v = self.resolve(callee, depth)
        if v.kind is not Kind.MODULE or v.cls is None or v.cls.startswith("torch."):
            return None
        return self.index.method(v.cls, "forward")

    def _reaches(self, callee: str, function: str, depth: int) -> bool:
        """Whether a call's callee is this function."""
        if callee.startswith("<"):
            cls, _, rest = callee[1:].partition(">")
            parts = rest.split(".")
            if len(parts) == 2 and not parts[0]:
                return self.index.method(cls, parts[1]) == function
            return self.resolve(callee, depth).cls == function
        if callee == function:
            return True
        if any(c in callee for c in "(:[~?"):
            return self.resolve(callee, depth).cls == function
        return self.index.canonical(callee) == function

    def _global(self, dotted: str, name: str, depth: int) -> Value | None:
        home = self._home(dotted)
        found = None if home is None else home[0].variables.get(home[1])
        return None if found is None else self.settle(decode(found), depth)

    # references ------------------------------------------------------------------------------------------------------

    def settle(self, v: Value, depth: int) -> Value:
        """A summary's value with its references followed."""
        if v.kind is Kind.UNKNOWN:
            return self.resolve(v.cls, depth) if v.cls is not None else UNKNOWN
        if v.kind is Kind.EXTERNAL and v.cls is not None:
            return objects.resolve(self._contexts[depth], v.cls)
        if v.kind is Kind.TENSOR or v.kind is Kind.DEVICE:
            return self._origin(v, depth) if v.cls is not None else v
        if v.element is None and v.items is None:
            return v
        element = _known(self.settle(v.element, depth)) if v.element is not None else None
        items = tuple(self.settle(item, depth) for item in v.items) if v.items is not None else None
        return make(v.kind, v.device, v.dtype, v.rank, element, items, v.cls, False, False, v.certainty, ())

    def _origin(self, v: Value, depth: int) -> Value:
        """A tensor (or device) whose place is that of a reference."""
        device, certainty = v.device, v.certainty
        if device is Device.UNKNOWN and v.cls is not None:
            source = self.resolve(v.cls, depth)
            if source.kind in (Kind.SEQUENCE, Kind.ITERATOR) and source.element is not None:
                source = source.element
            if source.kind in (Kind.TENSOR, Kind.DEVICE, Kind.MODULE):
                device, certainty = source.device, source.certainty
        elif device is Device.AMBIENT and v.cls is not None:
            source = self.resolve(v.cls, depth)  # the device that it was made for
            if source.kind in (Kind.DEVICE, Kind.STRING) and source.device is Device.HOST:
                device, certainty = source.device, min(source.certainty, Certainty.ASSUMED)
        return make(v.kind, device, v.dtype, v.rank, certainty=certainty)

    def resolve(self, reference: str, depth: int) -> Value:
        """What a reference means."""
        parts = split(reference)
        if parts is None:
            return UNKNOWN
        root, operations = parts
        context = self._contexts[depth]
        if root.startswith("<"):
            value = instance(context, root[1:-1], declared=bool(operations))
        elif ":" in root:
            function, _, name = root.partition(":")
            value = self.ask("p", function, name, depth) or UNKNOWN
        else:
            value = objects.resolve(context, root)
        for operation, detail in operations:
            value = _step(context, value, operation, detail)
            if value.kind is Kind.UNKNOWN and value.cls is None:
                return UNKNOWN
        return self.settle(value, depth) if value.kind is Kind.UNKNOWN else value


def _step(context: Context, v: Value, operation: str, detail: str) -> Value:
    if operation == ".":
        return objects.attribute(context, v, detail)
    if operation == "()":
        operands, keywords = arguments(detail)
        return calls.call(context, v, operands, keywords)
    if operation == "[]":
        if detail == ":":
            return v
        return objects.item(context, v, int(detail)) if detail else tensors.element(v)
    if operation == "~":
        return tensors.binary(context, v, tensors.SCALAR) if v.kind is not Kind.UNKNOWN else UNKNOWN
    if operation == "?":
        return tensors.compare(v, tensors.SCALAR) if v.kind is not Kind.UNKNOWN else UNKNOWN
    operands, keywords = arguments(detail)
    return calls.method(context, v, operation, operands, keywords)


_ANSWERS: dict[str, Callable[[LinkedValues, str, str, int], Value | None]] = {
    "r": LinkedValues._returned,
    "a": LinkedValues._attribute,
    "p": LinkedValues._passed,
    "g": LinkedValues._global,
}


def _known(v: Value) -> Value | None:
    return None if v == UNKNOWN else v


def _assume(v: Value) -> Value:
    if v.certainty is not Certainty.PROVEN:
        return v
    return make(v.kind, v.device, v.dtype, v.rank, v.element, v.items, v.cls, False, False, Certainty.ASSUMED, ())


def _meet(values: list[Value]) -> Value | None:
    """Join what several statements give.

    A model output beside its tuple form counts as the output, a tensor beside an early ``return False`` as the tensor.
    """
    kinds = {v.kind for v in values}
    for main, aside in ((Kind.INSTANCE, Kind.SEQUENCE), (Kind.TENSOR, Kind.SCALAR)):
        if kinds == {main, aside}:
            result = tensors.joined([v for v in values if v.kind is main])
            return None if result is None else _assume(result)
    return tensors.joined(values)


def refine(v: Value, declared: Value) -> Value:
    """What is inferred, completed by what is declared."""
    if v == UNKNOWN or v.kind is Kind.NONE:
        return declared
    if declared.kind is not v.kind:
        return v
    if v.kind is Kind.TENSOR:
        dtype = v.dtype if v.dtype is not v.dtype.UNKNOWN else declared.dtype
        device, certainty = (
            (v.device, v.certainty) if v.device is not Device.UNKNOWN else (declared.device, declared.certainty)
        )
        return make(Kind.TENSOR, device, dtype, v.rank, certainty=certainty)
    if v.kind is Kind.SEQUENCE:
        items = v.items
        if declared.items is not None:
            if items is None:
                items = declared.items
            elif len(items) == len(declared.items):
                items = tuple(refine(a, b) for a, b in zip(items, declared.items, strict=True))
        element = v.element if v.element is not None or items is not None else declared.element
        return make(Kind.SEQUENCE, element=element, items=items, cls=v.cls, certainty=v.certainty)
    if v.kind in (Kind.MAPPING, Kind.ITERATOR) and v.element is None:
        return declared
    return v
