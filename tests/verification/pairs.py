# ruff: noqa: E501 (a case a line)
"""Versions of functions as patches would make them: some subtly wrong, each in one way, and some right.

A case holds the original, the patched version, a maker of inputs, what the patch declares that it may change, and for
a wrong one the kind of difference by which it must be caught.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F

from awp_lint.detector.verification.agent.shadow import Allowed

EXACT, NUMERICS = Allowed(), Allowed(numerics=True)
POSITIONS = Allowed(numerics=True, positions=True)


@dataclass(frozen=True)
class Case:
    """One pair. ``kind``: of the expected difference, None for a right patch."""

    name: str
    original: Callable[..., Any]
    patched: Callable[..., Any]
    inputs: Callable[[], tuple[Any, ...]]
    kind: str | None = None
    allowed: Allowed = field(default=EXACT)


def _x(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7)).to(dtype)


def _qkv(q: int = 6, k: int = 6, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(3)
    return tuple(torch.randn(2, 4, n, 16, generator=generator).to(dtype) for n in (q, k, k))


def _eager(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, -1) @ v


def _causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    lower = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
    return _eager(q, k, v, lower)


def _mask(q: int = 6, k: int = 6) -> torch.Tensor:
    mask = torch.ones(q, k, dtype=torch.bool)
    mask[:, k - 2 :] = False
    return mask


class Cache:
    """Keys that grow in place."""

    def __init__(self) -> None:
        self.keys = torch.zeros(4, 8)
        self.length = 1

    def update(self, row: torch.Tensor) -> torch.Tensor:
        """Write a row; the filled part, as a view."""
        self.keys[self.length] = row
        self.length += 1
        return self.keys[: self.length]


class CacheCopies(Cache):
    """Gives a copy."""


def _update(cache: Cache, row: torch.Tensor) -> torch.Tensor:
    return cache.update(row)


def _update_copy(cache: Cache, row: torch.Tensor) -> torch.Tensor:
    return cache.update(row).clone()


def _update_lost(cache: Cache, row: torch.Tensor) -> torch.Tensor:
    keys = cache.keys.clone()
    keys[cache.length] = row
    cache.length += 1
    return keys[: cache.length]


def _update_stuck(cache: Cache, row: torch.Tensor) -> torch.Tensor:
    cache.keys[cache.length] = row
    return cache.keys[: cache.length + 1]


def _two_draws(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    first = torch.rand(4)
    return x + first, x * torch.rand(4)


def _two_draws_swapped(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    second = torch.rand(4)
    return x + torch.rand(4), x * second


def _one_draw(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    first, second = torch.rand(2, 4)
    return x + first, x * second


def _penalise(logits: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    logits[seen] = logits[seen] * 0.5
    return logits


def _clamp_nan(x: torch.Tensor) -> torch.Tensor:
    return torch.log(x)


def _loop(rows: list[torch.Tensor]) -> list[torch.Tensor]:
    return [row.softmax(-1) for row in rows]


def _steps(x: torch.Tensor, steps: int) -> torch.Tensor:
    for _ in range(steps):
        x = torch.tanh(x) + 0.01
    return x


def _steps_skipped(x: torch.Tensor, steps: int) -> torch.Tensor:
    for _ in range(steps - 1):
        x = torch.tanh(x) + 0.01
    return x


def _early(x: torch.Tensor, limit: float) -> torch.Tensor:
    out = torch.zeros_like(x)
    for row in range(x.shape[0]):
        if bool(x[row].max() > limit):
            continue
        out[row] = x[row]
    return out


def _early_return(x: torch.Tensor, limit: float) -> torch.Tensor:
    out = torch.zeros_like(x)
    for row in range(x.shape[0]):
        if bool(x[row].max() > limit):
            return out
        out[row] = x[row]
    return out


def _early_where(x: torch.Tensor, limit: float) -> torch.Tensor:
    return torch.where((x.amax(-1) > limit)[:, None], torch.zeros(()), x)


def _branch(x: torch.Tensor, training: bool, bias: torch.Tensor | None) -> torch.Tensor:
    if bias is not None:
        x = x + bias
    return x * (0.5 if training else 2.0)


def _norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


def _raises(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 2:
        raise ValueError("too long")
    return x


def _stats(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    out: torch.Tensor = model(x)
    return out


def _eval(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    model.eval()
    out: torch.Tensor = model(x)
    return out


def _batch_norm() -> tuple[torch.nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    return torch.nn.BatchNorm1d(8), _x(4, 8)


def _python_draw(x: torch.Tensor) -> torch.Tensor:
    return x * random.random()


def _item(x: torch.Tensor) -> float:
    return float(x.sum())


def _ids(scores: torch.Tensor) -> list[int]:
    found: list[int] = torch.sort(scores, dim=-1, descending=True).indices[:3].tolist()
    return found


def _rows(x: torch.Tensor, lengths: list[int]) -> dict[str, torch.Tensor]:
    return {str(n): x[row, :n].sum() for row, n in enumerate(lengths)}


def _positions(start: int, length: int, x: torch.Tensor) -> torch.Tensor:
    return torch.arange(start, start + length).to(x.device)


WRONG = [
    Case("first position for the last", lambda x, w: x @ w, lambda x, w: x[:, :1] @ w, lambda: (_x(2, 5, 64), _x(64, 8)),
         "value", POSITIONS),
    Case("two positions of five", lambda x, w: x @ w, lambda x, w: x[:, -2:] @ w, lambda: (_x(2, 5, 64), _x(64, 8)),
         "shape", POSITIONS),
    Case("last position unasked", lambda x, w: x @ w, lambda x, w: x[:, -1:] @ w, lambda: (_x(2, 5, 64), _x(64, 8)),
         "shape", NUMERICS),
    Case("dropped branch", _branch, lambda x, t, b: x * (0.5 if t else 2.0), lambda: (_x(3), False, _x(3)), "value"),
    Case("branch the wrong way", _branch, lambda x, t, b: _branch(x, not t, b), lambda: (_x(3), False, None), "value"),
    Case("mask polarity", _eager, lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=~m),
         lambda: (*_qkv(), _mask()), "value", NUMERICS),
    Case("mask left out", _eager, lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v),
         lambda: (*_qkv(), _mask()), "value", NUMERICS),
    Case("top-left causal with a cache", _causal, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
         lambda: _qkv(1, 6), "value", NUMERICS),
    Case("scale left out", _eager, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=1.0),
         lambda: _qkv(), "value", NUMERICS),
    Case("random numbers in another order", _two_draws, _two_draws_swapped, lambda: (_x(4),), "value"),
    Case("one random number more", lambda x: x + torch.rand(3), lambda x: x + torch.rand(4)[:3], lambda: (_x(3),), "rng"),
    Case("a random number of Python's less", _python_draw, lambda x: x * 0.5, lambda: (_x(3),), "value"),
    Case("a copy instead of a view", _update, _update_copy, lambda: (Cache(), _x(8)), "alias"),
    Case("a view instead of a copy", lambda x: x[:2].clone(), lambda x: x[:2], lambda: (_x(4),), "alias"),
    Case("in-place write lost", _update, _update_lost, lambda: (Cache(), _x(8)), "mutation"),
    Case("state not advanced", _update, _update_stuck, lambda: (Cache(), _x(8)), "mutation"),
    Case("argument written to", lambda x: x * 2, lambda x: x.mul_(2), lambda: (_x(3),), "mutation"),
    Case("result in another type", lambda x: x.float().softmax(-1), lambda x: x.softmax(-1),
         lambda: (_x(4, dtype=torch.bfloat16),), "dtype", NUMERICS),
    Case("computed in half precision", lambda x, w: x @ w, lambda x, w: (x.bfloat16() @ w.bfloat16()).float(),
         lambda: (_x(8, 8), _x(8, 8)), "value", NUMERICS),
    Case("norm computed in half precision", _norm,
         lambda x, w: w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5).to(torch.float16).to(x.dtype)),
         lambda: (_x(4, 64), _x(64)), "value", NUMERICS),
    Case("NaN hidden", _clamp_nan, lambda x: torch.log(x.clamp(min=1e-9)), lambda: (_x(8),), "nan", NUMERICS),
    Case("infinities replaced", lambda x, m: x.masked_fill(m, float("-inf")), lambda x, m: x.masked_fill(m, -1e9),
         lambda: (_x(4), torch.tensor([True, False, False, True])), "inf", NUMERICS),
    Case("work skipped", _steps, _steps_skipped, lambda: (_x(4), 3), "value", NUMERICS),
    Case("early return", _early, _early_return, lambda: (torch.tensor([[1.0, 0], [9, 0], [2, 0]]), 5.0), "value"),
    Case("one row forgotten", _loop, lambda rows: _loop(rows[:-1]), lambda: ([_x(3), _x(4)],), "structure"),
    Case("shape kept that was dropped", lambda x: x.sum(-1), lambda x: x.sum(-1, keepdim=True), lambda: (_x(3, 4),),
         "shape"),
    Case("a tensor instead of a number", _item, lambda x: x.sum(), lambda: (_x(4),), "type"),
    Case("does not run", _norm, lambda x, w: torch.rms_norm(x, (3,), w), lambda: (_x(4, 8), _x(8)), "raises", NUMERICS),
    Case("an error swallowed", _raises, lambda x: x, lambda: (_x(3),), "raises"),
    Case("mode left changed", _stats, _eval, _batch_norm, "mutation"),
    Case("ties in another order", _ids, lambda s: torch.sort(s.flip(-1), dim=-1, descending=True).indices[:3].tolist(),
         lambda: (torch.tensor([1.0, 3, 2, 5]),), "value"),
]  # fmt: skip

RIGHT = [
    Case("fused attention", _eager, lambda q, k, v: F.scaled_dot_product_attention(q, k, v), lambda: _qkv(), None,
         NUMERICS),
    Case("fused attention in bfloat16", _eager, lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
         lambda: _qkv(dtype=torch.bfloat16), None, NUMERICS),
    Case("fused attention with its mask", _eager, lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
         lambda: (*_qkv(), _mask()), None, NUMERICS),
    Case("causal with the cache's own mask", _causal,
         lambda q, k, v: F.scaled_dot_product_attention(
             q, k, v, attn_mask=torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])),
         lambda: _qkv(2, 6), None, NUMERICS),
    Case("fused norm", _norm, lambda x, w: F.rms_norm(x, w.shape, w, 1e-5), lambda: (_x(4, 64), _x(64)), None, NUMERICS),
    Case("fused norm in bfloat16", _norm, lambda x, w: F.rms_norm(x, w.shape, w, 1e-5),
         lambda: (_x(4, 64, dtype=torch.bfloat16), _x(64, dtype=torch.bfloat16)), None, NUMERICS),
    Case("made on the device", _positions, lambda s, n, x: torch.arange(s, s + n, device=x.device),
         lambda: (3, 4, _x(2))),
    Case("mask by where", _penalise, lambda x, s: x.copy_(torch.where(s, x * 0.5, x)),
         lambda: (_x(6), torch.tensor([True, False, True, False, False, True]))),
    Case("no rows instead of a loop", _early, _early_where, lambda: (torch.tensor([[1.0, 0], [9, 0], [2, 0]]), 5.0)),
    Case("one softmax for all rows", lambda rows: torch.stack([r.softmax(-1) for r in rows]),
         lambda rows: torch.stack(rows).softmax(-1), lambda: ([_x(4), _x(4)],)),
    Case("top k instead of a sort", _ids, lambda s: s.topk(3).indices.tolist(), lambda: (torch.tensor([1.0, 3, 2, 5]),)),
    Case("the same draws", _two_draws, lambda x: _two_draws(x), lambda: (_x(4),)),
    Case("draws that are allowed to move", _two_draws, _one_draw, lambda: (_x(4),), None, Allowed(rng=True)),
    Case("the cache as it was", _update, lambda c, r: c.update(r), lambda: (Cache(), _x(8))),
    Case("a copy that is allowed", _update, _update_copy, lambda: (Cache(), _x(8)), None, Allowed(aliasing=True)),
    Case("in-place as before", lambda x: x.mul_(2), lambda x: x.mul_(2.0), lambda: (_x(3),)),
    Case("NaN kept", _clamp_nan, lambda x: x.log(), lambda: (_x(8),)),
    Case("infinities kept", lambda x, m: x.masked_fill(m, float("-inf")),
         lambda x, m: torch.where(m, float("-inf"), x), lambda: (_x(4), torch.tensor([True, False, False, True]))),
    Case("batched matrix product", lambda a, b: torch.stack([x @ y for x, y in zip(a, b, strict=True)]),
         lambda a, b: torch.bmm(a, b), lambda: (_x(3, 8, 8), _x(3, 8, 8)), None, NUMERICS),
    Case("addmm", lambda x, w, b: x @ w + b, lambda x, w, b: torch.addmm(b, x, w), lambda: (_x(4, 8), _x(8, 8), _x(8)),
         None, NUMERICS),
    Case("the same error", _raises, lambda x: _raises(x), lambda: (_x(3),)),
    Case("statistics kept", _stats, lambda m, x: m.forward(x), _batch_norm),
    Case("one read for all rows", _rows, lambda x, n: {str(v): x[i, :v].sum() for i, v in enumerate(n)},
         lambda: (_x(2, 4), [2, 4])),
    Case("linear in double", lambda x, w: F.linear(x, w), lambda x, w: F.linear(x.double(), w.double()).float(),
         lambda: (_x(4, 64), _x(8, 64)), None, NUMERICS),
    Case("gelu by its name", lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)), lambda x: F.gelu(x), lambda: (_x(64),), None,
         NUMERICS),
    Case("silu by its name", lambda x: x * torch.sigmoid(x), lambda x: F.silu(x), lambda: (_x(64),), None, NUMERICS),
    Case("log-softmax of the chosen only", lambda x, i: torch.log_softmax(x, -1).gather(-1, i),
         lambda x, i: x.gather(-1, i) - x.logsumexp(-1, keepdim=True), lambda: (_x(4, 32), torch.tensor([[3]] * 4)), None,
         NUMERICS),
    Case("head on the last position", lambda x, w: (x @ w, x), lambda x, w: (x[:, -1:] @ w, x),
         lambda: (_x(2, 5, 64), _x(64, 8)), None, POSITIONS),
    Case("head on the last position in bfloat16", lambda x, w: x @ w, lambda x, w: x[:, -1:] @ w,
         lambda: (_x(2, 5, 64, dtype=torch.bfloat16), _x(64, 8, dtype=torch.bfloat16)), None, POSITIONS),
]  # fmt: skip
