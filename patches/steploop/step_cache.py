"""Caches that grow by concatenation, in a step that runs as a graph (see ``step_graph``).

    keys = grow(keys, new, dim=2)            instead of      keys = torch.cat([keys, new], dim=2)
    length = length_of(keys, 2)              instead of      length = keys.shape[2]
    context = attend(query, keys, values)    instead of      F.scaled_dot_product_attention(query, keys, values)

Outside of such a step they do what stands at the right. In it a cache that was handed to the step lives in a buffer
with room to spare; how far it is filled is known on the device, and a mask hides the rest. When a buffer is full a
larger one takes its place; when its cache is gone it serves the next one, so that not every request captures a graph.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
import torch.nn.functional as F

from awp_lint.patches.steploop.step_graph import capturing, each_replay, given, in_step

ROOM = 256  # lengths of buffers are multiples of it
_MARK = "step_buffer"  # the attribute of a tensor that is lent a buffer's memory


class _Buffer:
    """A tensor with room, and how much of it is filled: here and on the device."""

    def __init__(self, tensor: torch.Tensor, dim: int) -> None:
        self.tensor = tensor
        self.dim = dim
        self.length = 0
        self.on_device = torch.zeros((), dtype=torch.long, device=tensor.device)

    def has_room(self, count: int) -> bool:
        return bool(self.length + count <= self.tensor.shape[self.dim])

    def add(self, count: int) -> None:
        self.length += count


_unused: dict[Any, list[tuple[int, _Buffer]]] = {}
_made: dict[Any, int] = {}


def _buffer_of(tensor: torch.Tensor) -> _Buffer | None:
    return getattr(tensor, _MARK, None)


def grow(old: torch.Tensor, new: torch.Tensor, dim: int) -> torch.Tensor:
    """``torch.cat([old, new], dim)``; in a captured step written into the buffer of ``old``, which is given whole."""
    buffer = _buffer_of(old)
    if not in_step() or (buffer is None and not given(old)):  # a cache made in the step itself is the same every time
        kept = old if buffer is None else old.narrow(dim, 0, buffer.length)
        return torch.cat([kept, new], dim=dim)
    count = new.shape[dim]
    if buffer is None or not buffer.has_room(count):
        if capturing():
            raise RuntimeError("the cache has no room left")
        old = _moved(old if buffer is None else old.narrow(dim, 0, buffer.length), count, dim)
        buffer = _buffer_of(old)
        assert buffer is not None
    places = buffer.on_device + torch.arange(count, device=new.device)
    old.index_copy_(dim, places, new)
    buffer.on_device.add_(count)
    if capturing():
        each_replay(lambda: buffer.has_room(count), lambda: buffer.add(count))
    else:
        buffer.add(count)
    return old


def _moved(old: torch.Tensor, count: int, dim: int) -> torch.Tensor:
    """The content of a tensor in a buffer with room for ``count`` more: one that nobody uses any more, or a new one."""
    length = old.shape[dim]
    shape = list(old.shape)
    shape[dim] = ROOM * (1 + (length + count + ROOM // 2) // ROOM)
    key = (tuple(shape), dim, old.dtype, old.device, torch.is_inference_mode_enabled())
    free = _unused.setdefault(key, [])
    if free:
        number, buffer = free.pop(free.index(min(free, key=lambda item: item[0])))  # the same place as the last time
    else:
        number = _made[key] = _made.get(key, 0) + 1
        buffer = _Buffer(old.new_zeros(shape), dim)
    buffer.tensor.narrow(dim, 0, length).copy_(old)
    buffer.length = length
    buffer.on_device.fill_(length)
    lent = buffer.tensor.view_as(buffer.tensor)
    setattr(lent, _MARK, buffer)
    weakref.finalize(lent, free.append, (number, buffer))
    return lent


def length_of(tensor: torch.Tensor, dim: int) -> Any:
    """``tensor.shape[dim]``; of a buffer how far it is filled: in a captured step as a 0-d tensor."""
    buffer = _buffer_of(tensor)
    if buffer is None:
        return tensor.shape[dim]
    return buffer.on_device.clone() if in_step() else buffer.length


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **options: Any) -> torch.Tensor:
    """``F.scaled_dot_product_attention``; of a buffer only what is filled is seen."""
    buffer = _buffer_of(key)
    if buffer is None:
        return F.scaled_dot_product_attention(query, key, value, **options)
    if query.shape[-2] != 1 or options.pop("is_causal", False):
        raise RuntimeError("more than one new position at once")
    columns = torch.arange(key.shape[-2], device=key.device)
    mask = (columns < buffer.on_device).expand(query.shape[-2], -1)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, **options)
