"""Where two results differ: values, shapes, types, devices, NaN, aliasing, written arguments. By name, not by feel."""

from __future__ import annotations

import math
import random
import sys
import types
from typing import Any, NamedTuple

_MOST = 8  # differences that are worth telling
_CLOCK = 1e-5  # relative: numbers that equal code makes further apart than by rounding are not results
_EXACT_FACTOR = 2.0  # times what two runs of the same code differ by
_REFERENCE_FACTOR = 1.5  # times the original's error against the reference


class Difference(NamedTuple):
    """One difference. ``kind``: type, structure, shape, dtype, device, nan, inf, value, alias, grad, mutation, rng,
    stale or raises; ``where`` is a path such as ``result[0]`` or ``self.cache.keys``."""

    kind: str
    where: str
    text: str

    def words(self) -> str:
        """In a line."""
        return "%s of %s: %s" % (self.kind, self.where, self.text)


class Rules:
    """What counts as equal. ``numerics``: rounding may differ; else bit for bit, but for the same code's own noise.

    ``twins``: the two come from programs that loaded their own copies of a module; classes are told by their names.
    ``opaque``: names of classes whose objects are not looked into. ``positions``: a tensor may hold the last position
    alone, where the original holds several.
    """

    def __init__(
        self,
        numerics: bool = False,
        twins: bool = False,
        opaque: frozenset[str] = frozenset(),
        positions: bool = False,
    ) -> None:
        self.numerics = numerics
        self.twins = twins
        self.opaque = opaque
        self.positions = positions
        self.suspect: list[tuple[str, Any, Any]] = []  # within no tolerance: a reference must decide


def differences(one: Any, other: Any, where: str, rules: Rules, again: Any = None) -> list[Difference]:
    """Differences of ``other`` from ``one``. ``again``: a second result of the code that gave ``one``."""
    walk = _Walk(rules)
    walk.pair(one, other, again, where)
    return walk.found


class _Walk:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.found: list[Difference] = []
        self._seen: set[tuple[int, int]] = set()
        self.torch: Any = sys.modules.get("torch")

    def say(self, kind: str, where: str, text: str) -> None:
        if len(self.found) < _MOST:
            self.found.append(Difference(kind, where, text))

    def pair(self, one: Any, other: Any, again: Any, where: str) -> None:
        if one is other:
            return
        key = (id(one), id(other))
        if key in self._seen:
            return
        self._seen.add(key)
        if self.torch is not None and isinstance(one, self.torch.Tensor) and isinstance(other, self.torch.Tensor):
            self.tensors(one, other, again, where)
            return
        if type(one) is not type(other) and not (self.rules.twins and _same_class(type(one), type(other))):
            self.say("type", where, "%s instead of %s" % (_name(other), _name(one)))
            return
        if isinstance(one, float):
            self.floats(one, other, again, where)
        elif isinstance(one, (int, str, bytes, complex, type(None))):
            if one != other and not (again is not None and one != again):
                self.say("value", where, "%r instead of %r" % (_short(other), _short(one)))
        elif isinstance(one, dict):
            self.mappings(one, other, again, where)
            self.attributes(one, other, again, where)
        elif isinstance(one, (list, tuple)):
            self.sequences(one, other, again, where)
            self.attributes(one, other, again, where)
        elif isinstance(one, (set, frozenset)):
            if len(one) != len(other):
                self.say("structure", where, "%d members instead of %d" % (len(other), len(one)))
        elif type(one).__name__ == "ndarray":
            if again is None or bool(((again == one) | (again != again)).all()):
                self.arrays(one, other, where)
        elif type(one).__name__ == "deque":
            self.sequences(list(one), list(other), None if again is None else list(again), where)
        elif isinstance(one, random.Random):
            if one.getstate() != other.getstate():
                self.say("rng", where, "the generator has been drawn from differently")
        elif self.torch is not None and isinstance(one, self.torch.Generator):
            if not bool((one.get_state() == other.get_state()).all()):
                self.say("rng", where, "the generator has been drawn from differently")
        elif isinstance(one, (types.FunctionType, types.ModuleType, type)):
            return
        else:
            self.attributes(one, other, again, where)

    def attributes(self, one: Any, other: Any, again: Any, where: str) -> None:
        if type(one).__qualname__ in self.rules.opaque:
            return
        mine, theirs = getattr(one, "__dict__", None), getattr(other, "__dict__", None)
        if mine is not None and theirs is not None:
            third = getattr(again, "__dict__", None)
            self.mappings(mine, theirs, third, where, "%s.%s")
        for cls in type(one).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(one, name) and hasattr(other, name) and name not in ("__dict__", "__weakref__"):
                    self.pair(getattr(one, name), getattr(other, name), getattr(again, name, None), where + "." + name)

    def mappings(self, one: Any, other: Any, again: Any, where: str, form: str = "%s[%r]") -> None:
        for name in one:
            if name not in other:
                self.say("structure", form % (where, name), "missing")
                continue
            third = again.get(name) if isinstance(again, dict) else None
            if form == "%s.%s" and name in ("_parameters", "_modules", "_buffers"):
                self.mappings(one[name] or {}, other[name] or {}, third, where, "%s.%s")
            else:
                self.pair(one[name], other[name], third, form % (where, name))
        for name in other:
            if name not in one:
                self.say("structure", form % (where, name), "was not there before")

    def sequences(self, one: Any, other: Any, again: Any, where: str) -> None:
        if len(one) != len(other):
            self.say("structure", where, "%d items instead of %d" % (len(other), len(one)))
            return
        same = isinstance(again, (list, tuple)) and len(again) == len(one)
        for index, (mine, theirs) in enumerate(zip(one, other)):
            self.pair(mine, theirs, again[index] if same else None, "%s[%d]" % (where, index))

    def floats(self, one: float, other: float, again: Any, where: str) -> None:
        if math.isnan(one) or math.isnan(other):
            if math.isnan(one) is not math.isnan(other):
                self.say("nan", where, "%r instead of %r" % (other, one))
            return
        noise = abs(again - one) if isinstance(again, float) else 0.0
        if noise > _CLOCK * abs(one):
            return  # a time or the like, which equal code does not repeat either
        room = _EXACT_FACTOR * noise
        if self.rules.numerics:
            room = max(room, 1e-5 * abs(one))
        if abs(one - other) > room:
            self.say("value", where, "%r instead of %r" % (other, one))

    def arrays(self, one: Any, other: Any, where: str) -> None:
        if one.shape != other.shape or one.dtype != other.dtype:
            self.say("shape", where, "%s %s instead of %s %s" % (other.shape, other.dtype, one.shape, one.dtype))
        elif not ((one == other) | ((one != one) & (other != other))).all():
            self.say("value", where, "the array holds other values")

    def tensors(self, one: Any, other: Any, again: Any, where: str) -> None:
        torch = self.torch
        if self.rules.positions:
            one, again = last_position(one, other), last_position(again, other)
        if one.shape != other.shape:
            self.say("shape", where, "%s instead of %s" % (tuple(other.shape), tuple(one.shape)))
        elif one.dtype != other.dtype:
            self.say("dtype", where, "%s instead of %s" % (other.dtype, one.dtype))
        elif one.device != other.device:
            self.say("device", where, "%s instead of %s" % (other.device, one.device))
        elif one.layout != other.layout:
            self.say("type", where, "%s instead of %s" % (other.layout, one.layout))
        elif one.device.type != "meta":
            with torch.no_grad():
                self.values(one.detach(), other.detach(), again, where)
        if one.requires_grad != other.requires_grad:
            self.say("grad", where, "requires_grad is %s instead of %s" % (other.requires_grad, one.requires_grad))

    def values(self, one: Any, other: Any, again: Any, where: str) -> None:
        torch = self.torch
        if one.layout is not torch.strided or one.is_quantized:
            one, other = one.to_dense(), other.to_dense()
        if not (one.is_floating_point() or one.is_complex()):
            wrong = one != other
            if bool(wrong.any()) and not (_tensor_like(again, one) and bool((again != one).any())):
                self.say("value", where, "%d of %d elements differ" % (int(wrong.sum()), one.numel()))
            return
        if one.numel() == 0 or torch.equal(one, other):
            return
        for kind, test in (("nan", torch.isnan), ("inf", torch.isinf)):
            mine, theirs = test(one), test(other)
            if not torch.equal(mine, theirs):
                count = int((mine != theirs).sum())
                self.say(kind, where, "%d of %d elements are, or are not, %s" % (count, one.numel(), kind))
                return
        finite = torch.isfinite(one)
        wide = torch.complex128 if one.is_complex() else torch.float64
        a, b = one[finite].to(wide), other[finite].to(wide)
        if not torch.equal(one[torch.isinf(one)], other[torch.isinf(one)]):
            self.say("inf", where, "infinities of the other sign")
            return
        if a.numel() == 0:
            return
        off = (a - b).abs()
        noise = 0.0
        if _tensor_like(again, one):
            noise = float((again[finite].to(wide) - a).abs().nan_to_num(0.0).max())
        room = _EXACT_FACTOR * noise
        worst = float(off.max())
        if worst <= room:
            return
        scale = float(a.abs().max())
        text = "off by up to %.3g where values reach %.3g" % (worst, scale)
        if self.rules.numerics:
            if bool((off <= room + _tolerance(torch, one.dtype) * (scale + a.abs())).all()):
                return
            self.rules.suspect.append((where, one, other))
        self.say("value", where, text)


def last_position(value: Any, like: Any) -> Any:
    """Of a tensor that holds several positions where ``like`` holds one, the last; else the value itself."""
    shapes = (getattr(value, "shape", ()), getattr(like, "shape", ()))
    apart = [n for n, (mine, theirs) in enumerate(zip(*shapes)) if mine != theirs]
    if len(shapes[0]) != len(shapes[1]) or len(apart) != 1 or like.shape[apart[0]] != 1 or value.shape[apart[0]] < 1:
        return value
    return value.narrow(apart[0], value.shape[apart[0]] - 1, 1)


def closer(reference: Any, one: Any, other: Any) -> bool:
    """Whether ``other`` is about as near to the reference as the original, by root mean square."""
    torch: Any = sys.modules["torch"]
    reference = last_position(reference, one)
    if not _tensor_like(reference, one, dtype=False):
        return False
    with torch.no_grad():
        finite = torch.isfinite(one) & torch.isfinite(reference)
        truth = reference[finite].double()
        mine = float((one[finite].double() - truth).pow(2).mean().sqrt())
        theirs = float((other[finite].double() - truth).pow(2).mean().sqrt())
        least = torch.finfo(one.dtype).eps / 4 * float(truth.pow(2).mean().sqrt())
    return bool(theirs <= _REFERENCE_FACTOR * max(mine, least))


def _tolerance(torch: Any, dtype: Any) -> float:
    """Of the value and of the largest value, where rounding may differ."""
    if dtype in (torch.float16, torch.bfloat16):
        return float(torch.finfo(dtype).eps)
    return 32 * float(torch.finfo(dtype).eps)


def _tensor_like(value: Any, one: Any, dtype: bool = True) -> bool:
    torch: Any = sys.modules["torch"]
    return isinstance(value, torch.Tensor) and value.shape == one.shape and (not dtype or value.dtype == one.dtype)


def tensors_in(value: Any, where: str, limit: int = 20_000) -> list[tuple[str, Any]]:
    """The tensors that a value reaches, each with its path, in a fixed order."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return []
    found: list[tuple[str, Any]] = []
    seen: set[int] = set()
    stack = [(where, value)]
    while stack and len(seen) < limit:
        path, item = stack.pop()
        if isinstance(item, (str, bytes, int, float, type(None), type, types.FunctionType, types.ModuleType)):
            continue
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, torch.Tensor):
            found.append((path, item))
        elif isinstance(item, dict):
            stack += [("%s[%r]" % (path, key), part) for key, part in item.items()]
        elif isinstance(item, (list, tuple)):
            stack += [("%s[%d]" % (path, number), part) for number, part in enumerate(item)]
        elif hasattr(item, "__dict__"):
            for name, part in vars(item).items():
                inner = name in ("_parameters", "_modules", "_buffers")
                stack += (
                    [("%s.%s" % (path, key), entry) for key, entry in part.items()]
                    if inner and isinstance(part, dict)
                    else [("%s.%s" % (path, name), part)]
                )
    return found


def aliases(result: Any, inputs: Any) -> dict[str, str]:
    """Which tensors of a result share memory with an input or with each other: path → path."""
    owners: dict[int, str] = {}
    for path, tensor in sorted(tensors_in(inputs, ""), key=lambda entry: (len(entry[0]), entry[0])):
        key = _memory(tensor)
        if key is not None:
            owners.setdefault(key, path or "the argument")
    found: dict[str, str] = {}
    for path, tensor in sorted(tensors_in(result, "result"), key=lambda entry: (len(entry[0]), entry[0])):
        key = _memory(tensor)
        if key is None:
            continue
        if key in owners:
            found[path] = owners[key]
        else:
            owners[key] = path
    return found


def _memory(tensor: Any) -> Any:
    try:
        storage = tensor.untyped_storage()
        return storage._cdata if storage.nbytes() else None
    except Exception:
        return None


def _same_class(one: type, other: type) -> bool:
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def _name(value: Any) -> str:
    return type(value).__name__


def _short(value: Any) -> Any:
    return value[:60] if isinstance(value, (str, bytes)) else value
