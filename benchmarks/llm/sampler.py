"""Three small samplers that read the device in their loops, for patches that a model writes.

    python sampler.py --size cpu --rounds 20

Each does its work in one function, so that a patch of one leaves the others as they are. Prints a checksum, and the
time of a round on standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import sys
import time

import torch
from torch import nn

SIZES = {"cpu": (2, 32, 128, 4), "gpu": (4, 256, 1024, 6)}  # rows, length, width, layers


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width, bias=False)
        self.down = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.silu(self.up(self.norm(x))))


class Backbone(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


class Samplers:
    def __init__(self, size: str, device: torch.device) -> None:
        self.rows, self.length, width, layers = SIZES[size]
        self.width, self.device = width, device
        self.dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        torch.manual_seed(0)
        self.model = Backbone(width, layers).to(device=device, dtype=self.dtype).eval()
        self.corrector = Backbone(width // 4, 1).to(device=device, dtype=self.dtype).eval()

    def noise(self, seed: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(self.rows, self.length, self.width, generator=generator)
        return noise.to(device=self.device, dtype=self.dtype)

    @torch.inference_mode()
    def denoise(self, seed: int, steps: int) -> torch.Tensor:
        """The largest value of each step scales the next one."""
        latents = self.noise(seed)
        for _ in range(steps):
            peak = latents.abs().max().item()
            latents = self.model(latents / peak)
        return latents

    @torch.inference_mode()
    def refine(self, seed: int, steps: int) -> torch.Tensor:
        """Early steps are not weighed. A quarter of the width, a small model, many steps."""
        latents = self.noise(seed)[..., : self.width // 4]
        timesteps = torch.linspace(999, 0, steps, device=self.device)
        for t in timesteps:
            weight = 0.0 if t.item() > 900 else 0.5
            latents = latents - weight * self.corrector(latents)
        return latents

    @torch.inference_mode()
    def restore(self, seed: int, steps: int, limit: float) -> torch.Tensor:
        """Values stay within the limit."""
        latents = self.noise(seed)
        for _ in range(steps):
            latents = self.model(latents)
            if (latents.abs() > limit).any():
                latents = latents.clamp(-limit, limit)
        return latents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=12)
    options = parser.parse_args()
    device = torch.device("cuda" if options.size == "gpu" else "cpu")
    torch.set_num_threads(1)
    samplers = Samplers(options.size, device)
    digest = hashlib.sha256()
    times: list[float] = []
    for round_ in range(options.rounds):
        began = time.perf_counter()
        made = [
            samplers.denoise(round_, options.steps),
            samplers.refine(round_, 8 * options.steps),
            samplers.restore(round_, options.steps, 3.0),
        ]
        for one in made:
            digest.update(one.float().cpu().numpy().tobytes())
        times.append(time.perf_counter() - began)
    print(f"checksum {digest.hexdigest()[:16]}")
    print(f"{statistics.median(times) * 1e3:.1f} ms a round", file=sys.stderr)


if __name__ == "__main__":
    main()
