"""Runs one step of a loop as a CUDA graph.

    logits = run_step(model, tokens, at(position), cache)      instead of      model(tokens, position, cache)

The first calls with inputs of a new shape run as they always did, on a side stream. Then the step is captured, and from
there on a call copies its tensors into static buffers, replays the graph and returns copies of the results. Without a
CUDA device, with gradients, or where a capture fails, ``run_step`` calls the step and does nothing else.

A replay runs no Python: the step must not read device values, and what changes from step to step must come in as a
tensor or as ``at(number)``. Objects (caches) are known by identity and by the addresses of their tensors.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

logger = logging.getLogger(__name__)

WARM_UPS = 2  # calls of a new shape before it is captured; each is a real step
MOST_GRAPHS = 16  # of one step; the one that was not used for longest goes first

_state = threading.local()
_plain = (int, float, str, bool, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)


class at(int):
    """A number that changes from step to step: inside a graph it is a 0-d tensor, elsewhere the ``int`` it is."""


def in_step() -> bool:
    """Whether the running code belongs to a step that is, or will be, captured: numbers given by ``at`` are tensors."""
    return getattr(_state, "inside", False)


def capturing() -> bool:
    """Whether the running code is being recorded: it is not executed, and runs in Python no more."""
    return getattr(_state, "hooks", None) is not None


def each_replay(ready: Callable[[], bool], done: Callable[[], None]) -> None:
    """While a step is captured: what is asked before each replay, which otherwise is no replay, and done after it."""
    _state.hooks.append((ready, done))


def given(tensor: torch.Tensor) -> bool:
    """Whether a tensor belongs to an object that was handed to the running step."""
    return any(tensor is one for one in getattr(_state, "given", ()))


def run_step(step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call ``step``, as a graph where that is possible."""
    if not _has_cuda():
        return step(*map(_number, args), **{name: _number(value) for name, value in kwargs.items()})
    leaves, spec = tree_flatten((args, kwargs))
    if not _usable(leaves):
        args, kwargs = tree_unflatten([_number(leaf) for leaf in leaves], spec)
        return step(*args, **kwargs)
    return _graphs_of(step).call(leaves, spec)


@cache
def _has_cuda() -> bool:
    return bool(torch.cuda.is_available())


def _number(leaf: Any) -> Any:
    return int(leaf) if type(leaf) is at and not in_step() else leaf


def _usable(leaves: list[Any]) -> bool:
    """Whether a graph can be made: all tensors on one CUDA device, no gradients, no capture under way."""
    devices = {leaf.device for leaf in leaves if isinstance(leaf, torch.Tensor)}
    if len(devices) != 1 or in_step() or torch.is_grad_enabled():
        return False
    device = devices.pop()
    if device.type != "cuda" or device.index != torch.cuda.current_device():
        return False
    return not torch.cuda.is_current_stream_capturing()


_graphs: weakref.WeakKeyDictionary[Any, dict[Any, StepGraphs]] = weakref.WeakKeyDictionary()
_guard = threading.Lock()


def _graphs_of(step: Callable[..., Any]) -> StepGraphs:
    """The graphs of a step: kept as long as the module, or the object whose method it is."""
    owner = getattr(step, "__self__", step)
    function = getattr(step, "__func__", None)
    with _guard:
        of_owner = _graphs.setdefault(owner, {})
        if function not in of_owner:
            of_owner[function] = StepGraphs(weakref.ref(owner), function)
        return of_owner[function]


class StepGraphs:
    """The graphs of one step, by the shapes and objects that it is called with."""

    def __init__(self, owner: weakref.ref[Any], function: Any) -> None:
        self._owner = owner
        self._function = function
        self._entries: OrderedDict[Any, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._failed = False

    def _step(self) -> Callable[..., Any]:
        owner: Any = self._owner()
        step: Callable[..., Any] = owner if self._function is None else self._function.__get__(owner)
        return step

    def call(self, leaves: list[Any], spec: Any) -> Any:
        """One step."""
        with self._lock:  # copy in, replay, copy out belong together
            if not self._failed:
                key = (spec, *map(_meaning, leaves), *_modes(self._step()))
                entry = self._entries.pop(key, None) or _Entry()
                self._entries[key] = entry
                if len(self._entries) > MOST_GRAPHS:
                    self._entries.popitem(last=False)
                try:
                    return entry.call(self._step(), leaves, spec)
                except CaptureFailed as error:
                    self._failed = True
                    self._entries.clear()
                    cause = error.__cause__ or error
                    cause = cause.__context__ or cause  # what went wrong first: the end of a capture fails as well
                    logger.warning("the step is not captured, it runs as before: %s", cause)
        args, kwargs = tree_unflatten([_number(leaf) for leaf in leaves], spec)
        return self._step()(*args, **kwargs)


class CaptureFailed(Exception):
    """The step cannot run in the form that a graph needs; it is called as before, then and from there on."""


class _Entry:
    """One combination of shapes and objects: warm-up calls, then a graph with its buffers."""

    def __init__(self) -> None:
        self.calls = 0
        self.objects: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.spec: Any = None
        self.replay: Callable[[], None] | None = None
        self.hooks: list[tuple[Callable[[], bool], Callable[[], None]]] = []

    def call(self, step: Callable[..., Any], leaves: list[Any], spec: Any) -> Any:
        if not all(ready() for ready, _ in self.hooks) or (self.replay is None and self.calls < WARM_UPS):
            self.calls += 1
            try:
                with _side_stream():
                    return _run(step, [_buffer(leaf) if type(leaf) is at else leaf for leaf in leaves], spec)
            except Exception as error:
                raise CaptureFailed from error
        if self.replay is None:
            self._capture(step, leaves, spec)
        else:
            _fill(self.inputs, leaves)
        assert self.replay is not None
        self.replay()
        for _, done in self.hooks:
            done()
        return tree_unflatten(_copies(self.outputs), self.spec)

    def _capture(self, step: Callable[..., Any], leaves: list[Any], spec: Any) -> None:
        inputs = [_buffer(leaf) for leaf in leaves]
        hooks: list[tuple[Callable[[], bool], Callable[[], None]]] = []
        _state.hooks = hooks
        try:
            self.replay, result = record(lambda: _run(step, inputs, spec))
        except Exception as error:
            raise CaptureFailed from error
        finally:
            _state.hooks = None
        self.hooks = hooks
        self.objects = [leaf for leaf in leaves if _is_object(leaf) and not _buffered(leaf)]  # their memory is in use
        self.inputs = [None if _is_object(leaf) else leaf for leaf in inputs]
        self.outputs, self.spec = tree_flatten(result)
        known = {id(leaf) for leaf in leaves}
        for leaf in self.outputs:
            if _is_object(leaf) and id(leaf) not in known:
                raise CaptureFailed(f"it returns a {type(leaf).__name__}, whose tensors cannot be seen")


def record(run: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
    """Capture a function; returns what replays it and the static results."""
    graph = torch.cuda.CUDAGraph()
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    state = generator.clone_state() if hasattr(generator, "clone_state") else None
    try:
        with torch.cuda.graph(graph, pool=_pool(), capture_error_mode="thread_local"):
            result = run()
    except BaseException:
        if state is not None:  # a capture that failed leaves it in a state in which nothing can be drawn
            generator.graphsafe_set_state(state)
        raise
    _captured.setdefault(torch.cuda.current_device(), weakref.WeakSet()).add(graph)
    return graph.replay, result


_captured: dict[int, weakref.WeakSet[Any]] = {}


def _pool() -> Any:
    """The memory pool of the device's other graphs, or none where no graph is left: a pool ends with its last graph.

    They can share one, since every result is copied out before another graph runs.
    """
    for graph in _captured.get(torch.cuda.current_device(), ()):
        return graph.pool()
    return None


def _run(step: Callable[..., Any], leaves: list[Any], spec: Any) -> Any:
    args, kwargs = tree_unflatten(leaves, spec)
    _state.inside = True
    _state.given = [tensor for leaf in leaves if _is_object(leaf) for tensor in _held(leaf)]
    try:
        return step(*args, **kwargs)
    finally:
        _state.inside = False
        _state.given = ()


@contextmanager
def _side_stream() -> Iterator[None]:
    if not torch.cuda.is_available():
        yield
        return
    cuda: Any = torch.cuda
    current, side = cuda.current_stream(), cuda.Stream()
    side.wait_stream(current)
    with cuda.stream(side):
        yield
    current.wait_stream(side)


def _buffer(leaf: Any) -> Any:
    """What stands for an argument in the graph: a copy of a tensor, a 0-d tensor for a number that changes."""
    if isinstance(leaf, torch.Tensor):
        return leaf.clone()
    return torch.full((), int(leaf), dtype=torch.long, device=_device()) if type(leaf) is at else leaf


def _device() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


def _fill(buffers: list[Any], leaves: list[Any]) -> None:
    pairs = []
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor):
            pairs.append((buffers[index], leaf))
        elif type(leaf) is at:
            buffers[index].fill_(int(leaf))
    if pairs:
        torch._foreach_copy_([buffer for buffer, _ in pairs], [leaf for _, leaf in pairs])


def _copies(outputs: list[Any]) -> list[Any]:
    tensors = [leaf for leaf in outputs if isinstance(leaf, torch.Tensor)]
    fresh = [torch.empty_like(leaf) for leaf in tensors]
    if fresh:
        torch._foreach_copy_(fresh, tensors)
    rest = iter(fresh)
    return [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in outputs]


def _meaning(leaf: Any) -> Any:
    """What of an argument decides which graph serves."""
    if isinstance(leaf, torch.Tensor):
        return leaf.shape, leaf.dtype, leaf.device
    if type(leaf) is at:
        return at
    if isinstance(leaf, _plain):
        return type(leaf), leaf
    return (0 if _buffered(leaf) else id(leaf)), _addresses(leaf)


def _is_object(leaf: Any) -> bool:
    return not isinstance(leaf, (torch.Tensor, *_plain))


def _held(thing: Any) -> list[torch.Tensor]:
    """The tensors that an object holds in its attributes, and in lists and dicts there."""
    held = tree_flatten(list(vars(thing).values()))[0] if hasattr(thing, "__dict__") else []
    return [item for item in held if isinstance(item, torch.Tensor)]


def _buffered(thing: Any) -> bool:
    """Whether all tensors of an object lie in buffers that outlive it: then any object in these buffers will do."""
    held = [] if isinstance(thing, torch.nn.Module) else _held(thing)
    return bool(held) and all(hasattr(tensor, "step_buffer") for tensor in held)


def _addresses(thing: Any) -> tuple[int, ...]:
    """Where the tensors of an object lie: a graph goes on using the old ones when they are replaced."""
    if isinstance(thing, torch.nn.Module):
        return tuple(
            t.data_ptr() for t in (next(thing.parameters(), None), next(thing.buffers(), None)) if t is not None
        )
    return tuple(item.data_ptr() for item in _held(thing))


def _modes(step: Callable[..., Any]) -> tuple[Any, ...]:
    """Switches outside of the arguments that change what a step does."""
    module = getattr(step, "__self__", step)
    stream = torch.cuda.current_stream().cuda_stream if torch.cuda.is_available() else 0
    autocast = torch.is_autocast_enabled()
    training = getattr(module, "training", False)
    weights = _addresses(module) if isinstance(module, torch.nn.Module) else ()
    return stream, torch.is_inference_mode_enabled(), autocast, training, weights
