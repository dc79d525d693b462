"""What the versions' functions give, call by call, where whole programs run side by side.

The programs stand at the same unit and do the same requests, so the n-th call of a function in one answers the n-th in
the others. A few calls of each function are kept: copies of what it returns and of its arguments afterwards, ``self``
left out, since how an object is made inside is what such patches change.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from time import perf_counter
from types import CodeType, FunctionType
from typing import Any

from awp_lint.detector.verification.agent.compare import Difference, Rules, aliases, differences
from awp_lint.detector.verification.agent.copying import Copier, Uncopyable
from awp_lint.detector.verification.agent.device import Device
from awp_lint.detector.verification.agent.gate import GATE, Lines, turnstile
from awp_lint.detector.verification.agent.seats import Seat
from awp_lint.detector.verification.agent.shadow import Allowed
from awp_lint.detector.verification.agent.task import Edited, Patch
from awp_lint.detector.verification.agent.versions import by_path, changed, text_of

_SAMPLES = 12  # calls of one function
_FIRST = 4  # calls that are all kept; later ones at growing distance
_SECONDS = 6.0  # for the copies of one program
_APART = 0.25  # of the largest value: no rounding makes the first call's results so different
_SUSPENDS = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
_BUILDERS = ("__init__", "__new__", "__post_init__", "__init_subclass__", "__set_name__", "__setstate__")

_Key = tuple[str, Edited]


class _Kept:
    """One call. ``value`` holds copies; ``unknown``: why there are none; ``raised``: the type of what it raised."""

    __slots__ = ("aliases", "ended", "raised", "unknown", "value")

    def __init__(self) -> None:
        self.ended = False
        self.raised = self.unknown = ""
        self.value: Any = None
        self.aliases: dict[str, str] = {}


class Witness:
    """Of one patch's programs. ``enclosing``: functions that hold units, by path and name; they are looked at too."""

    def __init__(self, patch: Patch, enclosing: Sequence[tuple[str, str]], allowed: Allowed, device: Device) -> None:
        self.allowed = allowed
        self.device = device
        self.kept: dict[str, dict[_Key, dict[int, _Kept]]] = {}
        self.calls: dict[str, dict[_Key, int]] = {}
        self._ended: dict[str, dict[_Key, int]] = {}
        self.lines: dict[_Key, set[int]] = {}
        self.seconds = 0.0
        self.comparing = False
        self.encloses: list[tuple[str, Edited]] = [
            (path, Edited(tuple(name.split(".")), 0)) for path, name in enclosing
        ]
        self._wanted: dict[str, set[Edited]] = {}
        self.edited: set[_Key] = set()
        self._classes: frozenset[str] = frozenset()
        self.elsewhere = False  # something is edited that runs as modules are loaded
        for path, file in patch.files.items():
            if not file.created:
                edited, around, classes, elsewhere = _of_interest(file.before, file.after)
                self._classes |= classes
                self.elsewhere = self.elsewhere or elsewhere
                self._wanted[path] = edited | around
                self.edited.update((path, one) for one in edited)
        for path, function in self.encloses:
            self._wanted.setdefault(path, set()).add(function)
        self._taken: set[tuple[_Key, int]] | None = None  # calls that the first program kept
        self._bases: list[tuple[Seat, _Key, FunctionType, CodeType]] = []
        self._shut: list[tuple[FunctionType, CodeType]] = []

    def shut(self, seat: Seat) -> None:
        """From now on calls of this program's functions come through here."""
        import gc

        setattr(builtins, GATE, self._call)
        kept: dict[_Key, dict[int, _Kept]] = {}
        self.kept[seat.arm] = kept
        self.calls[seat.arm], self._ended[seat.arm] = {}, {}
        codes: dict[int, _Key] = {}
        for path, wanted in self._wanted.items():
            found = by_path(seat.codes[path]) if path in seat.codes else {}
            for edited in wanted:
                code = found.get(edited)
                if code is not None and not code.co_flags & _SUSPENDS:
                    codes[id(code)] = (path, edited)
        for function in [o for o in gc.get_objects() if type(o) is FunctionType]:
            key = codes.get(id(function.__code__))
            if key is not None:
                code = function.__code__
                kept.setdefault(key, {})
                self._bases.append((seat, key, _copy(function, code), code))
                self._shut.append((function, code))
                function.__code__ = turnstile(len(self._bases) - 1, code)

    def open(self) -> None:
        """The functions have their own code again, and the first program's choice of calls stands."""
        for function, code in self._shut:
            function.__code__ = code
        self._shut = []
        if self._taken is None:
            kept = next(iter(self.kept.values()), {})
            self._taken = {(key, number) for key, calls in kept.items() for number in calls}
        self.seconds = 0.0

    def enough(self, arm: str) -> bool:
        """Whether every function that ran was looked at as often as is worth it."""
        calls = self._ended.get(arm, {})
        return self.seconds > _SECONDS or (bool(calls) and all(number >= _SAMPLES for number in calls.values()))

    def called(self, arm: str) -> bool:
        """Whether any function ran to its end."""
        return bool(self._ended.get(arm))

    def _call(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        seat, key, function, code = self._bases[number]
        calls = self.calls[seat.arm]
        count = calls[key] = calls.get(key, 0) + 1
        if not self._chosen(key, count):
            try:
                return function(*args, **kwargs)
            finally:
                self._end(seat, key)
        kept = _Kept()
        self.kept[seat.arm][key][count] = kept
        try:
            if seat.arm == "B":
                with Lines(code, self.lines.setdefault(key, set())):
                    value = function(*args, **kwargs)
            else:
                value = function(*args, **kwargs)
        except BaseException as fault:
            kept.raised, kept.ended = type(fault).__name__, True
            self._end(seat, key)
            raise
        began = perf_counter()
        try:
            bound = code.co_varnames[:1] in (("self",), ("cls",))
            told = {
                "result": value,
                "arguments": [None if self._opaque(arg) else arg for arg in (args[1:] if bound else args)],
                "named": {name: None if self._opaque(arg) else arg for name, arg in kwargs.items()},
            }
            kept.value = Copier(self.device.room()).copy(told)
            kept.aliases = aliases(value, told["arguments"])
        except Uncopyable as why:
            kept.unknown = str(why)
        except Exception as fault:
            kept.unknown = "%s: %s" % (type(fault).__name__, fault)
        self.seconds += perf_counter() - began
        kept.ended = True
        self._end(seat, key)
        return value

    def _end(self, seat: Seat, key: _Key) -> None:
        ended = self._ended[seat.arm]
        ended[key] = ended.get(key, 0) + 1

    def _opaque(self, value: Any) -> bool:
        """Whether a patch may make this object otherwise inside: models, and instances of the classes that it edits."""
        torch: Any = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.nn.Module):
            return True
        return type(value).__qualname__ in self._classes

    def _chosen(self, key: _Key, count: int) -> bool:
        if self._taken is not None:
            return (key, count) in self._taken
        if self.seconds > _SECONDS or len(self.kept[next(iter(self.kept))][key]) >= _SAMPLES:
            return False
        return count <= _FIRST or count & (count - 1) == 0

    # -- what they say --

    def result(self) -> list[dict[str, Any]]:
        """An entry a function, as the comparison of single calls gives them.

        Edited functions must be comparable; of those around them only what could be compared counts.
        """
        told = {key: self._function(key) for key in self.kept.get("A", {}) if self._matched(key)}
        found = [entry for key, entry in told.items() if key in self.edited or entry["compared"] or entry["found"]]
        if not any(entry["compared"] or entry["found"] for entry in found):
            return [told[key] if key in told else self._unmatched(key) for key in self.kept.get("A", {})]
        return found

    def _matched(self, key: _Key) -> bool:
        """Whether the patched version calls a function as often: where not, calls do not answer each other."""
        one, two, three = (self.calls.get(arm, {}).get(key, 0) for arm in ("A", "A2", "B"))
        return one == three or one != two

    def _unmatched(self, key: _Key) -> dict[str, Any]:
        one, three = (self.calls.get(arm, {}).get(key, 0) for arm in ("A", "B"))
        why = "the patched version calls it %d times where the original does %d times" % (three, one)
        return {
            "function": key[1].label(), "calls": max(one, three), "compared": 0, "unknown": [why], "raised": "",
            "found": [], "lines": [],
        }  # fmt: skip

    def _function(self, key: _Key) -> dict[str, Any]:
        mine, again, other = (self.kept.get(arm, {}).get(key, {}) for arm in ("A", "A2", "B"))
        compared, unknown, raised = 0, [], ""
        wrong: list[Difference] = []
        for number in sorted(mine):
            one, two, three = mine[number], again.get(number), other.get(number)
            if two is None or three is None or not (one.ended and two.ended and three.ended):
                continue  # the look was over before the call was
            why = one.unknown or two.unknown or three.unknown
            if why:
                unknown.append(why)
                continue
            compared += 1
            if one.raised != three.raised:
                if one.raised == two.raised:
                    text = "%s instead of %s" % (three.raised or "nothing", one.raised or "nothing")
                    wrong, raised = [Difference("raises", "the call", text)], three.raised
                    break
                continue
            if self._restless(one, two):
                compared -= 1
                unknown.append("equal code does not repeat its results")
                continue
            rules = Rules(self.allowed.numerics, True, self._classes, self.allowed.positions)
            wrong = self._differ(one, two, three, rules)
            if wrong and self.allowed.numerics and not _far(rules, wrong, number):
                # Without a run in higher precision it cannot be told from rounding, which such a patch may change.
                unknown, wrong, compared = ["%s: by rounding or not is not known" % wrong[0].words()], [], 0
                break
            if wrong:
                break
        return {
            "function": key[1].label(),
            "calls": self.calls.get("B", {}).get(key, 0) or self.calls["A"].get(key, 0),
            "compared": compared,
            "unknown": unknown,
            "raised": raised,
            "found": [list(d) for d in wrong],
            "lines": sorted(self.lines.get(key, ())),
        }

    def _restless(self, one: _Kept, two: _Kept) -> bool:
        """Whether the same code gives other things from run to run, and not only other numbers."""
        found = differences(one.value, two.value, "", Rules(self.allowed.numerics, True, self._classes))
        return any(d.kind != "value" for d in found)

    def _differ(self, one: _Kept, two: _Kept, three: _Kept, rules: Rules) -> list[Difference]:
        found = [
            Difference(d.kind, _readable(d.where), d.text)
            for d in differences(one.value, three.value, "", rules, two.value)
        ]
        if not self.allowed.aliasing and one.aliases != three.aliases and one.aliases == two.aliases and not found:
            found.append(Difference("alias", "result", "shares memory with other arguments than before"))
        return found


def _far(rules: Rules, found: list[Difference], number: int) -> bool:
    """Whether what differs in a patch that may round otherwise is surely no rounding."""
    if any(d.kind not in ("value", "structure") for d in found):
        return True
    return number == 1 and any(
        float((a - b).abs().max()) > _APART * float(a.abs().max()) for _, a, b in rules.suspect if a.numel()
    )


def _of_interest(before: bytes, after: bytes) -> tuple[set[Edited], set[Edited], frozenset[str], bool]:
    """Functions that both texts have: those whose code differs, and methods of classes in which something does.

    Then these classes, and whether what runs as the module is loaded differs.
    """
    modules = [compile(text, "", "exec", dont_inherit=True) for text in (before, after)]
    one, other = by_path(modules[0]), by_path(modules[1])
    edited = changed(before, after)
    classes = {key.names[:-1] for key in edited if len(key.names) > 1}
    both = {k for k in one.keys() & other.keys() if k.names[-1] not in _BUILDERS and one[k].co_flags & 0x2}
    bodies = {key for key in edited if not (one.get(key) or other[key]).co_flags & 0x2}
    elsewhere = any(text_of(one.get(key), False) != text_of(other.get(key), False) for key in bodies)
    elsewhere = elsewhere or text_of(modules[0], False) != text_of(modules[1], False)
    around = {key for key in both - edited if key.names[:-1] in classes}
    return both & edited, around, frozenset(".".join(names) for names in classes), elsewhere


def _copy(function: FunctionType, code: CodeType) -> FunctionType:
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    made.__qualname__ = function.__qualname__
    return made


def _readable(where: str) -> str:
    """``['result'][0]`` → ``result[0]``."""
    if where.startswith("['"):
        name, _, rest = where[2:].partition("']")
        return name + rest
    return where or "the call"
