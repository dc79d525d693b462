"""Code with hot reads, branches, masks and uploads, before and after its fixes: both are run on the same inputs.

Every case is a function in a class or loop that the rules see as hot. It is rewritten by one rule's fixes, and both
versions get the same inputs in several types and layouts; results must be equal bit for bit, in type, shape,
sign of zero and place of NaN.
"""

from __future__ import annotations

import copy
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from awp_lint.detector.finding import Safety
from awp_lint.detector.project.source import Source
from awp_lint.detector.semantics.model import view_of_source
from awp_lint.patches.plan import plan_file
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@dataclass(frozen=True)
class Case:
    """``code`` defines ``run``; ``inputs`` gives argument tuples; ``has`` and ``lacks`` are texts of the result."""

    name: str
    rule: str
    code: str
    inputs: Callable[[], Iterator[tuple[Any, ...]]]
    has: str
    lacks: str = "\0"


def floats() -> Iterator[Any]:
    """Vectors of several types and layouts, with the values that break rewrites."""
    torch.manual_seed(3)
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        yield torch.randn(9).to(dtype)
        yield torch.randn(18).to(dtype)[::2]
        special = torch.randn(9).to(dtype)
        special[2], special[5], special[7] = float("nan"), float("inf"), -0.0
        yield special


def images() -> Iterator[tuple[Any, ...]]:
    for vector in floats():
        yield (torch.outer(vector, torch.ones(4, dtype=vector.dtype)), vector)
        yield (torch.outer(torch.ones(4, dtype=vector.dtype), vector).t(), vector)


def masks() -> Iterator[Any]:
    yield torch.tensor([True, False] * 4 + [True])
    yield torch.zeros(9, dtype=torch.bool)
    yield torch.ones(9, dtype=torch.bool)
    yield (torch.arange(18) % 3 == 0)[::2]


LOOP = """
import torch

class Pipeline:
    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, timesteps: torch.Tensor):
        seen = []
        for i, t in enumerate(timesteps):
            if t.item() > 0.5:
                latents = latents * t
            seen.append(float(t))
        return latents, seen

def run(latents, timesteps):
    return Pipeline()(latents.clone(), timesteps)
"""

GRID = """
import torch
from torch import nn

class Tower(nn.Module):
    def rot_pos_emb(self, grid_thw: torch.Tensor) -> torch.Tensor:
        pos_ids = []
        for t, h, w in grid_thw:
            rows = torch.arange(h).unsqueeze(1).expand(-1, w)
            pos_ids.append(rows.flatten().repeat(t, 1).flatten())
        return torch.cat(pos_ids)

    def forward(self, hidden_states: torch.Tensor, grid_thw: torch.Tensor) -> torch.Tensor:
        return self.rot_pos_emb(grid_thw)

def run(grid):
    return Tower()(torch.zeros(1), grid)
"""

ROW = """
import torch
from torch import nn

class Tower(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = blocks

    def forward(self, hidden_states: torch.Tensor, grid_thw: torch.Tensor):
        sizes = []
        for block in self.blocks:
            grid_thw = grid_thw + block
            t, h, w = grid_thw[0].item(), grid_thw[1].item(), grid_thw[-1].item()
            sizes.append((t, h * w))
        return sizes

def run(grid):
    return Tower([1, 2])(torch.zeros(1), grid)
"""

INDEX = """
import torch

class Scheduler:
    def __init__(self, timesteps: torch.Tensor):
        self.timesteps = timesteps.to("cpu" if True else "cuda")

class Pipeline:
    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, timesteps: torch.Tensor):
        found = []
        for t in timesteps.cpu().tolist():
            indices = (timesteps == t).nonzero()
            position = 1 if len(indices) > 1 else 0
            found.append(indices[position].item())
        return found

def run(timesteps):
    return Pipeline()(timesteps, timesteps)
"""

SELECT = """
import torch
from torch import nn

class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            before = hidden_states.abs().sum()
            after = hidden_states.square().sum()
            if after > before:
                limited = hidden_states / 2
                hidden_states = limited * 0.5 + hidden_states * 0.25
            if not torch.isfinite(hidden_states).all():
                hidden_states = torch.nan_to_num(hidden_states)
            hidden_states = hidden_states + 1 if (attention_mask == 0).any() else hidden_states - 1
        return hidden_states

def run(hidden_states, mask):
    return Decoder([1, 2, 3])(hidden_states.clone(), mask)
"""

CHECK = """
import torch

class Pipeline:
    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, timesteps: torch.Tensor):
        for t in timesteps:
            latents = latents + t
            if torch.isnan(latents).any():
                raise FloatingPointError("not a number")
        return latents

def run(latents, timesteps):
    try:
        return Pipeline()(latents.clone(), timesteps)
    except FloatingPointError as error:
        return str(error)
"""

NESTED = """
import torch

class Pipeline:
    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, timesteps: torch.Tensor):
        for t in timesteps:
            for layer in range(3):
                latents = latents + t * layer
                if torch.isnan(latents).any():
                    raise FloatingPointError("inner")
            if torch.isinf(latents).any():
                raise FloatingPointError("outer")
        return latents

def run(latents, timesteps):
    try:
        return Pipeline()(latents.clone(), timesteps)
    except FloatingPointError as error:
        return "wrong number"
"""

GUARDED = """
import torch
from torch import nn

class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        padded = attention_mask == 0
        for layer in self.layers:
            hidden_states = hidden_states * 1.5
            if padded.any():
                hidden_states = torch.where(padded, 0.0, hidden_states)
                hidden_states = hidden_states.masked_fill(padded, -1.0)
        return hidden_states

def run(hidden_states, mask):
    return Decoder([1, 2])(hidden_states.clone(), mask)
"""

PENALTY = """
import torch
from torch import nn

class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        seen = attention_mask == 1
        for layer in self.layers:
            scores = hidden_states[seen]
            hidden_states[seen] = torch.where(scores > 0, scores / 1.3, scores * 1.3).to(scores.dtype)
        return hidden_states

def run(hidden_states, mask):
    hidden_states = hidden_states.clone()
    out = Decoder([1, 2])(hidden_states, mask)
    return out, hidden_states, out is hidden_states
"""

TOTALS = """
import torch

class Pipeline:
    def __init__(self):
        self.total = 1.5

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, timesteps: torch.Tensor):
        for t in timesteps:
            latents = latents * 0.9
            self.total += latents.float().mean().item()
        return self.total

def run(latents, timesteps):
    return Pipeline()(latents, timesteps)
"""

BUILTINS = """
import torch
from itertools import groupby
from torch import nn

class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, ids: torch.Tensor):
        found = []
        for layer in self.layers:
            flags = hidden_states.flatten() > 0.5
            norms = hidden_states.square().flatten()
            found.append((any(flags), all(flags), max(norms), min(norms)))
            letters = ids.flatten()
            found.append([int(k) for k, _ in groupby(letters)])
        return found

def run(hidden_states, ids):
    return Decoder([1])(hidden_states, ids)
"""

INVARIANT = """
import torch
from torch import nn

class Tower(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = blocks

    def forward(self, hidden_states: torch.Tensor, cu_seqlens: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            longest = (cu_seqlens[1:] - cu_seqlens[:-1]).max().item()
            bias = (1.0 - hidden_states.new_ones(3) * 0.5) if False else 0.0
            hidden_states = hidden_states * longest + bias
        return hidden_states

def run(hidden_states, lengths):
    return Tower([1, 2])(hidden_states, lengths)
"""

UPLOADS = """
import torch
from torch import nn

class Norms(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, length: int, factor: float) -> torch.Tensor:
        for layer in self.layers:
            scale = torch.tensor([0.5, 1.0, 2.0], device=hidden_states.device)
            size = torch.tensor(length, device=hidden_states.device)
            half = torch.tensor([factor], device=hidden_states.device, dtype=hidden_states.dtype)
            hidden_states = hidden_states * scale.mean() + size + half
        return hidden_states

def run(hidden_states):
    return Norms([1, 2])(hidden_states, 7, 0.3)
"""

TABLE = """
import torch
from torch import nn

class Rope(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.freqs = torch.arange(0, dim, 2) / dim

    def forward(self, positions: torch.Tensor) -> torch.Tensor:
        freqs = self.freqs.to(positions.device, positions.dtype)
        return torch.outer(positions, freqs)

def run(positions):
    rope = Rope(8)
    return rope(positions), rope(positions), rope.freqs.dtype
"""

LENGTHS = """
import torch
from torch import nn

class Transformer(nn.Module):
    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        batch_size = hidden_states.shape[0]
        lengths = attention_mask.sum(dim=1)
        mask = torch.zeros_like(attention_mask)
        for i in range(batch_size):
            mask[i, : lengths[i]] = 1
        return mask

def run(hidden_states, mask):
    return Transformer()(hidden_states, mask)
"""

TOPK = """
import torch

class Generator:
    def __init__(self, model):
        self.model = model

    @torch.inference_mode()
    def generate(self, ids: torch.Tensor, max_new_tokens: int):
        found = []
        for _ in range(max_new_tokens):
            logits = self.model(ids)
            scores = torch.log_softmax(logits.float().cpu(), dim=-1)
            values, tokens = scores.topk(3, dim=-1)
            found.append((values.tolist(), tokens.tolist()))
        return found

def run(ids):
    return Generator(lambda x: torch.sin(x.float() * 3.1)).generate(ids, 2)
"""


def _loops() -> Iterator[tuple[Any, ...]]:
    for vector in floats():
        yield torch.ones(3, dtype=vector.dtype), vector
    yield torch.ones(3), torch.empty(0)


def _masked() -> Iterator[tuple[Any, ...]]:
    for mask in masks():
        for vector in floats():
            yield vector, mask.to(torch.long)
    yield torch.empty(0), torch.empty(0, dtype=torch.long)


CASES = [
    Case("loop", "AWP101", LOOP, _loops, "zip(timesteps, timesteps.tolist())", ".item()"),
    Case("row", "AWP101", ROW, lambda: iter([(torch.tensor([2, 3, 4]),), (torch.arange(12)[::4],)]),
         "grid_thw.tolist()", ".item()"),
    Case("totals", "AWP101", TOTALS, lambda: ((v, torch.arange(4)) for v in floats()), ".double()", ".item()"),
    Case("index", "AWP105", INDEX, lambda: iter([(torch.tensor([9.0, 5.0, 5.0, 1.0]),)]), ".cpu().nonzero()"),
    Case("select", "AWP102", SELECT, _masked, "torch.where(after > before", "if after"),
    Case("check", "AWP102", CHECK, _loops, "failed = failed |"),
    Case("nested", "AWP102", NESTED, _loops, "failed_2 = failed_2 |"),
    Case("guarded", "AWP102", GUARDED, _masked, "torch.where(padded", "padded.any()"),
    Case("builtins", "AWP103", BUILTINS,
         lambda: iter([(torch.tensor([0.2, 0.7]), torch.tensor([1, 1, 2, 1])), (torch.rand(4), torch.tensor([5]))]),
         "groupby(letters.tolist())", "any(flags)"),
    Case("lengths", "AWP104", LENGTHS,
         lambda: iter([(torch.zeros(3, 2), torch.tensor([[1, 1, 0], [0, 0, 0], [1, 1, 1]]))]), "lengths.tolist()"),
    Case("grid", "AWP104", GRID, lambda: iter([(torch.tensor([[1, 2, 3], [2, 2, 2]]),)]), "grid_thw.tolist()"),
    Case("penalty", "AWP105", PENALTY, _masked, "copy_(torch.where(seen"),
    Case("invariant", "AWP108", INVARIANT, lambda: iter([(torch.ones(3), torch.tensor([0, 3, 7]))]), "longest ="),
    Case("topk", "AWP111", TOPK, lambda: iter([(torch.arange(8)[None],)]), "log_softmax(logits.float()", ".cpu()"),
    Case("uploads", "AWP601", UPLOADS, lambda: ((torch.ones(1, dtype=v.dtype) * v[:1],) for v in floats()),
         "@functools.cache"),
    Case("table", "AWP606", TABLE, lambda: ((v,) for v in floats()), "if self.freqs.device != positions.device:"),
]  # fmt: skip


def fixed(code: str, rule: str) -> str:
    """The code after one rule's fixes, pass after pass until there is nothing more to do."""
    for _ in range(6):
        found = [
            f
            for f in run_rules(view_of_source(code, path="code.py"), all_rules()).findings
            if f.rule == rule and f.fix is not None and f.fix.edits
        ]
        if not found:
            return code
        patch = plan_file(Source.decode("code.py", code.encode()), found)
        assert patch.after != code
        assert all(f.fix is not None and f.fix.safety is not Safety.MANUAL for f in patch.applied)
        code = patch.after
    raise AssertionError("the fixes never settle")


def module(code: str) -> ModuleType:
    made = ModuleType("code")
    exec(compile(code, "code.py", "exec"), made.__dict__)
    return made


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        if not one.is_floating_point():
            return bool(torch.equal(one, other))
        numbers = torch.equal(one.isnan(), other.isnan()) and torch.equal(one.nan_to_num(7), other.nan_to_num(7))
        return bool(numbers and torch.equal(one.signbit(), other.signbit()))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return type(one) is type(other) and (one == other or (one != one and other != other))
    return type(one) is type(other) and bool(one == other)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_the_same_is_computed(case: Case) -> None:
    code = textwrap.dedent(case.code)
    after = fixed(code, case.rule)
    assert case.has in after and case.lacks not in after
    assert fixed(after, case.rule) == after
    one, other = module(code), module(after)
    tried = 0
    for inputs in case.inputs():
        expected = one.run(*copy.deepcopy(inputs))
        result = other.run(*copy.deepcopy(inputs))
        assert same(expected, result), (inputs, expected, result)
        tried += 1
    assert tried
