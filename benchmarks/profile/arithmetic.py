"""What the slice with shapes counts, against torch's own counter, and what describing inputs costs.

    python benchmarks/profile/arithmetic.py [--repeats 7]

Models of plain torch, random weights. `ours` are the FLOPs that the profile run's reader finds in a slice of a forward,
`torch` those of ``torch.utils.flop_counter``: a dispatch mode, another implementation. It knows neither a CPU's fused
attention nor the encoder's fast path, so that both are off for it, and it counts masked pairs of causal attention;
`whole` is ours without the mask. Then the CPU time of a forward plain, in a slice, and in a slice with shapes (median
and range), and the size of the two slices.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from awp_lint.detector.profiling.agent.files import Record
from awp_lint.detector.profiling.agent.tracer import Tracer
from awp_lint.detector.profiling.arithmetic.slices import Operator, operators


class Decoder(nn.Module):
    """Llama-like: grouped heads, a gated feed-forward part, causal attention."""

    causal = True

    layers: nn.ModuleList

    def __init__(self, dim: int = 256, layers: int = 4, heads: int = 8, kv: int = 2) -> None:
        super().__init__()
        self.heads, self.kv, self.size = heads, kv, dim // heads
        wide = (heads + 2 * kv) * self.size
        self.layers = nn.ModuleList(
            nn.ModuleList(
                [nn.Linear(dim, wide, bias=False), nn.Linear(dim, dim, bias=False), nn.Linear(dim, 6 * dim, bias=False),
                 nn.Linear(3 * dim, dim, bias=False)]
            )
            for _ in range(layers)
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, dim = x.shape
        for layer in self.layers:
            qkv, out, up, down = layer.children()
            parts = qkv(x).view(batch, length, -1, self.size).transpose(1, 2)
            q, k, v = parts.split([self.heads, self.kv, self.kv], dim=1)
            found = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=True)
            x = x + out(found.transpose(1, 2).reshape(batch, length, dim))
            left, right = up(x).chunk(2, dim=-1)
            x = x + down(nn.functional.silu(left) * right)
        return x


def models() -> dict[str, tuple[nn.Module, tuple[int, ...]]]:
    """A module and the shape of what it is given."""
    convolution = nn.Sequential(
        nn.Conv2d(3, 32, 7, stride=2, padding=3), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1, groups=4), nn.ReLU(),
        nn.ConvTranspose2d(64, 16, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 8, 3, padding=2, dilation=2),
    )  # fmt: skip
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(128, 4, 512, batch_first=True), 3)
    return {
        "decoder, prefill": (Decoder(), (2, 128, 256)),
        "decoder, one token": (Decoder(), (2, 1, 256)),
        "encoder": (encoder, (4, 64, 128)),
        "convolutions": (convolution, (2, 3, 96, 96)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    torch.manual_seed(0)
    print(f"Python {platform.python_version()}, torch {torch.__version__}, {os.cpu_count()} cores")
    columns = "".join(f"{name:>24}" for name in ("plain, ms of CPU", "in a slice", "with shapes"))
    print(f"{'':20}{'ours':>14}{'whole':>14}{'torch':>14}{columns}   kB of slices")
    for name, (module, shape) in models().items():
        x = torch.randn(shape)
        module.eval()
        with torch.no_grad():
            _row(name, lambda: module(x), options.repeats)  # noqa: B023 (called at once)


def _row(name: str, work: Callable[[], object], repeats: int) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    for _ in range(3):
        work()
    counter = FlopCounterMode(display=False)
    torch.backends.mha.set_fastpath_enabled(False)
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH), counter:
        work()
    torch.backends.mha.set_fastpath_enabled(True)
    plain = [_timed(work) for _ in range(repeats)]
    traced = [_slice(work, False) for _ in range(repeats)]
    shaped = [_slice(work, True) for _ in range(repeats)]
    Decoder.causal = False
    whole = _flops(_slice(work, True)[2])
    Decoder.causal = True
    times = (plain, [took for took, _, _ in traced], [took for took, _, _ in shaped])
    spread = "".join(f"{statistics.median(t):.2f} [{min(t):.2f}, {max(t):.2f}]".rjust(24) for t in times)
    counts = f"{_flops(shaped[-1][2]):14,}{whole:14,}{counter.get_total_flops():14,}"
    print(f"{name:20}{counts}{spread}   {traced[-1][1] / 1e3:.0f}, {shaped[-1][1] / 1e3:.0f}")


def _flops(ops: list[Operator]) -> int:
    return sum(op.count.flops for op in ops if op.count is not None)


def _timed(work: Callable[[], object]) -> float:
    """ms of CPU, over all threads."""
    began = time.process_time()
    work()
    return 1e3 * (time.process_time() - began)


def _slice(work: Callable[[], object], shapes: bool) -> tuple[float, int, list[Operator]]:
    """ms of the work, bytes of the slice, and its operators."""
    with tempfile.TemporaryDirectory() as folder:
        record = Record(folder)
        record.born()
        tracer = Tracer(record)
        tracer.start(shapes)
        took = _timed(work)
        tracer.stop()
        path = str(Path(folder, "slice.json"))
        size = tracer.export(path)
        return took, size, operators(path) if shapes else []


if __name__ == "__main__":
    main()
