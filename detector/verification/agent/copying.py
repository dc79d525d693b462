"""Deep copies of a call's arguments, for running both versions of a function on the same inputs.

Copies keep what aliases what: views of one storage become views of one copied storage. Parameters are shared, unless
a copy in higher precision is wanted; everything else that could be written to is copied, within bounds. What cannot be
copied without touching the world (a socket, a thread, a running generator) raises :class:`Uncopyable`.
"""

from __future__ import annotations

import collections
import copy
import enum
import functools
import logging
import random
import sys
import types
import weakref
from _thread import LockType, RLock
from typing import Any, Callable

_ATOMS = (
    type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis), type(NotImplemented), type,
    types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.CodeType, property, staticmethod,
    classmethod, enum.Enum, logging.Logger, weakref.ref, functools.partial,
)  # fmt: skip
_WORLD = ("socket", "ssl", "subprocess", "asyncio", "_asyncio", "selectors", "multiprocessing", "concurrent")
_MOST = 200_000  # objects


class Uncopyable(Exception):
    """A call's inputs cannot be copied; the text says why."""


class Puts(list):  # type: ignore[type-arg]
    """Stands for a queue that is written to: keeps what is put, in order, and gives nothing."""

    def put(self, item: Any, *rest: Any, **more: Any) -> None:
        """As a queue's."""
        self.append(item)

    put_nowait = put

    def get(self, *rest: Any, **more: Any) -> Any:
        """Nothing could ever come."""
        raise Uncopyable("it reads from a queue")

    get_nowait = get

    def empty(self) -> bool:
        """Whether nothing was put."""
        return not self

    def qsize(self) -> int:
        """How much was put."""
        return len(self)


class Copier:
    """Copies one call's inputs. ``upcast``: floating tensors in the next higher precision, parameters too."""

    def __init__(self, limit: int, upcast: bool = False) -> None:
        self.left = limit  # bytes of tensors
        self.upcast = upcast
        self.torch: Any = sys.modules.get("torch")
        self.parameters: list[Any] = []  # shared ones
        self._memo: dict[int, Any] = {}
        self._alive: list[Any] = []  # so that no id is given twice
        self._storages: dict[int, Any] = {}

    def copy(self, value: Any) -> Any:
        """The copy. Raises :class:`Uncopyable`."""
        try:
            return self._copy(value)
        except Uncopyable:
            raise
        except RecursionError:
            raise Uncopyable("its inputs are nested too deeply") from None
        except Exception as fault:
            raise Uncopyable("its inputs cannot be copied: %s: %s" % (type(fault).__name__, fault)) from None

    def _copy(self, value: Any) -> Any:
        if isinstance(value, _ATOMS):
            return value
        known = self._memo.get(id(value), self)
        if known is not self:
            return known
        if len(self._memo) > _MOST:
            raise Uncopyable("its inputs reach more than %d objects" % _MOST)
        return self._new(value)

    def _keep(self, value: Any, made: Any) -> Any:
        self._memo[id(value)] = made
        self._alive.append(value)
        return made

    def _new(self, value: Any) -> Any:
        kind: Any = type(value)
        torch = self.torch
        if torch is not None:
            if isinstance(value, torch.Tensor):
                return self._keep(value, self._tensor(value))
            if isinstance(value, torch.Generator):
                made = torch.Generator(device=value.device)
                made.set_state(value.get_state())
                return self._keep(value, made)
            if isinstance(value, torch.nn.Module):
                return self._module(value)
            if kind.__module__ in ("torch", "torch._C", "torch.cuda.streams"):
                return value  # devices, types, layouts, streams
        if kind is list:
            return self._filled(value, [], list.append, value)
        if kind is dict:
            return self._mapping(value, {})
        if isinstance(value, tuple):
            items = [self._copy(item) for item in value]
            return self._keep(value, tuple.__new__(kind, items))
        if isinstance(value, (set, frozenset)):
            return self._keep(value, kind(self._copy(item) for item in value))
        if isinstance(value, types.MethodType):
            return self._keep(value, types.MethodType(value.__func__, self._copy(value.__self__)))
        if isinstance(value, bytearray):
            return self._keep(value, bytearray(value))
        if isinstance(value, collections.deque):
            return self._filled(value, kind(maxlen=value.maxlen), collections.deque.append, value)
        if isinstance(value, random.Random):
            drawn = kind()
            drawn.setstate(value.getstate())
            return self._keep(value, drawn)
        if isinstance(value, LockType):
            return self._keep(value, type(value)())
        if isinstance(value, RLock):
            return self._keep(value, RLock())
        if kind.__name__ == "SimpleQueue" or kind.__module__ == "queue":
            return self._keep(value, Puts())
        if kind.__name__ == "ufunc" and kind.__module__ == "numpy":
            return value
        if kind.__name__ == "ndarray" and kind.__module__ == "numpy":
            return self._keep(value, value.copy())
        if isinstance(value, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, types.FrameType)):
            raise Uncopyable("its inputs hold a running %s" % kind.__name__)
        return self._object(value, kind)

    def _filled(self, value: Any, made: Any, add: Callable[[Any, Any], None], items: Any) -> Any:
        self._keep(value, made)
        for item in items:
            add(made, self._copy(item))
        return made

    def _mapping(self, value: Any, made: Any) -> Any:
        self._keep(value, made)
        store = collections.OrderedDict.__setitem__ if isinstance(made, collections.OrderedDict) else dict.__setitem__
        for key, item in list(dict.items(value)):
            store(made, self._copy(key), self._copy(item))
        return made

    def _object(self, value: Any, kind: Any) -> Any:
        module = kind.__module__ or ""
        outside = module in ("threading", "_io", "io", "_thread") and kind.__name__ not in ("Condition", "Event")
        if outside or module.split(".")[0] in _WORLD:
            raise Uncopyable("its inputs reach a %s.%s" % (module, kind.__name__))
        if isinstance(value, dict):
            made = kind.__new__(kind)
            self._mapping(value, made)
            if isinstance(value, collections.defaultdict):
                made.default_factory = value.default_factory
            return self._state(value, made)
        if isinstance(value, list):
            made = kind.__new__(kind)
            self._filled(value, made, list.append, list.__iter__(value))
            return self._state(value, made)
        if kind.__new__ is not object.__new__:
            if kind.__flags__ & (1 << 9):  # made in Python: its __new__ leads to a base of C
                raise Uncopyable("its inputs hold a %s.%s" % (module, kind.__name__))
            if hasattr(value, "__next__"):
                return self._keep(value, copy.copy(value))
            if getattr(kind, "__hash__", None) is not None and not hasattr(value, "__dict__") and _plain(value):
                return value
            raise Uncopyable("its inputs hold a %s.%s" % (module, kind.__name__))
        made = object.__new__(kind)
        self._keep(value, made)
        return self._state(value, made)

    def _state(self, value: Any, made: Any) -> Any:
        own = getattr(value, "__dict__", None)
        if own:
            # Plain storage: no __setattr__ of the program's runs.
            made.__dict__.update((name, self._copy(item)) for name, item in list(own.items()))
        for cls in type(value).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name in ("__dict__", "__weakref__"):
                    continue
                hidden = "_%s%s" % (cls.__name__.lstrip("_"), name) if name.startswith("__") else name
                try:
                    item = object.__getattribute__(value, hidden)
                except AttributeError:
                    continue
                object.__setattr__(made, hidden, self._copy(item))
        return made

    def _module(self, value: Any) -> Any:
        kind: Any = type(value)
        if isinstance(value, getattr(self.torch.jit, "ScriptModule", ())):
            return self._keep(value, value)
        made = self._keep(value, kind.__new__(kind))
        for name, item in list(value.__dict__.items()):
            hooks = name.endswith(("_hooks", "_hooks_with_kwargs", "_always_called"))
            made.__dict__[name] = item if hooks else self._copy(item)
        return made

    def _tensor(self, value: Any) -> Any:
        torch = self.torch
        if isinstance(value, torch.nn.Parameter) and not self.upcast:
            self.parameters.append(value)
            return value
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided:
            self._spend(value.numel() * value.element_size())
            return value.detach().clone()
        wider = _wider(torch, value.dtype) if self.upcast else None
        if value.device.type == "meta":
            return value
        with torch.no_grad():
            storage = value.untyped_storage()
            key = storage._cdata
            if key not in self._storages:
                self._spend(storage.nbytes() * (2 if wider else 1))
                flat = torch.empty(0, dtype=value.dtype, device=value.device).set_(storage)
                made = flat.clone() if wider is None else flat.to(wider)
                self._storages[key] = (value.dtype, made)
            dtype, flat = self._storages[key]
            if dtype is not value.dtype:
                if self.upcast:
                    raise Uncopyable("a storage is read as two types")
                flat = torch.empty(0, dtype=value.dtype, device=value.device).set_(flat.untyped_storage())
            made = torch.as_strided(flat, value.size(), value.stride(), value.storage_offset())
            if value.is_conj() or value.is_neg():
                made = value.clone()
            made = made.detach()
        if value.requires_grad and value.is_leaf and not torch.is_inference_mode_enabled():
            made.requires_grad_(True)
        return made

    def _spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise Uncopyable("its inputs hold too many bytes to be copied")


def _plain(value: Any) -> bool:
    """Whether an object of C without attributes is surely a value: it equals its own shallow copy."""
    try:
        return bool(copy.copy(value) == value)
    except Exception:
        return False


def _wider(torch: Any, dtype: Any) -> Any:
    """The next higher precision, or None."""
    return {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float64}.get(dtype)
