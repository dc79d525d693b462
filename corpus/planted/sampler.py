"""A diffusion-like sampler: a denoising loop with a scheduler that looks its step up, then a refining loop.

python sampler.py --device cuda --size gpu --seconds 20
python sampler.py --truth          times its own planted statements and prints JSON
"""

from __future__ import annotations

import sys

import torch
from common import Options, Served, parse, requests_for
from torch import nn

STEPS = 12
REFINE_STEPS = 4
BLOCKS = 5
MASK_SIDE = 64
SIZES = {"cpu": 1 << 14, "gpu": 1 << 24}


class Block(nn.Module):
    """Four pointwise kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(0.99))

    def forward(self, sample: torch.Tensor) -> torch.Tensor:
        inner = sample * self.gain
        inner = torch.sin(inner)
        inner = inner * 0.5
        return sample + inner


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))

    def forward(self, sample: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            sample = block(sample)
        return sample


class Scheduler:
    def __init__(self, steps: int, device: torch.device) -> None:
        self.timesteps = torch.linspace(999.0, 0.0, steps, device=device)
        self.sigmas = torch.linspace(1.0, 0.1, steps, device=device)

    def step(self, noise: torch.Tensor, timestep: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
        index = int((self.timesteps == timestep).nonzero())
        sigma = float(self.sigmas[index])
        if self.sigmas[index] > 0.05:
            sample = sample - sigma * noise
        return sample


@torch.inference_mode()
def denoise(model: Denoiser, scheduler: Scheduler, latents: torch.Tensor, device: torch.device) -> torch.Tensor:
    outside = torch.tensor(0.0, device=device)
    border = torch.zeros(latents.shape[0], dtype=torch.bool, device=device)
    border[:64] = True
    peaks = []
    for timestep in scheduler.timesteps:
        weight = torch.ones(MASK_SIDE, MASK_SIDE).to(device)
        noise = model(latents)
        noise[border] = outside
        noise[: MASK_SIDE * MASK_SIDE] *= weight.view(-1)
        latents = scheduler.step(noise, timestep, latents)
        peaks.append((latents[:64].amax().item(), latents[:64].amin().item()))
    return latents


@torch.inference_mode()
def refine(model: Denoiser, latents: torch.Tensor, steps: int) -> torch.Tensor:
    for _step in range(steps):
        latents = model(latents)
    return latents


def serve(options: Options) -> Served:
    device = torch.device(options.device)
    torch.manual_seed(0)
    model = Denoiser().to(device).eval()
    latents = torch.linspace(-1.0, 1.0, SIZES[options.size], device=device)
    served = 0
    for request in requests_for(options.seconds):
        image = denoise(model, Scheduler(STEPS, device), latents, device)
        refine(model, image, REFINE_STEPS)
        served = request + 1
    return Served(served, served * STEPS)


def main() -> int:
    options = parse(__doc__)
    if options.truth:
        from truth import print_truth

        print_truth(__file__, options)
    elif options.around:
        from truth import measure_around

        measure_around(__file__, serve, options)
    else:
        print(serve(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
