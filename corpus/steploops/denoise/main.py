"""Draws a few images: random text in, latents out, with classifier-free guidance and Euler steps.

    python main.py --size cpu --steps 12

The checksum of the latents goes to standard output, the time to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time

import torch
from model import SIZES, DiffusionTransformer


class EulerScheduler:
    def __init__(self, train_steps: int = 1000) -> None:
        betas = torch.linspace(0.00085**0.5, 0.012**0.5, train_steps) ** 2
        alphas = (1 - betas).cumprod(dim=0)
        self.all_sigmas = ((1 - alphas) / alphas).sqrt()
        self.timesteps = torch.empty(0)
        self.sigmas: list[float] = []

    def set_timesteps(self, steps: int, device: torch.device) -> None:
        chosen = torch.linspace(len(self.all_sigmas) - 1, 0, steps).round().long()
        self.sigmas = [*self.all_sigmas[chosen].tolist(), 0.0]
        self.timesteps = chosen.to(device)

    def scale(self, latents: torch.Tensor, index: int) -> torch.Tensor:
        return latents / (self.sigmas[index] ** 2 + 1) ** 0.5

    def step(self, noise: torch.Tensor, index: int, latents: torch.Tensor) -> torch.Tensor:
        return latents + noise * (self.sigmas[index + 1] - self.sigmas[index])


class ImagePipeline:
    def __init__(self, model: DiffusionTransformer, scheduler: EulerScheduler, device: torch.device) -> None:
        self.transformer = model
        self.scheduler = scheduler
        self.device = device
        self.dtype = next(model.parameters()).dtype

    @torch.no_grad()
    def generate(self, text: torch.Tensor, num_inference_steps: int, guidance: float, seed: int) -> torch.Tensor:
        config = self.transformer.config
        generator = torch.Generator().manual_seed(seed)
        shape = (text.shape[0], config.channels, config.side, config.side)
        self.scheduler.set_timesteps(num_inference_steps, self.device)
        latents = torch.randn(shape, generator=generator).to(self.device, self.dtype) * self.scheduler.sigmas[0]
        both = torch.cat([torch.zeros_like(text), text])
        for index, t in enumerate(self.scheduler.timesteps):
            scaled = self.scheduler.scale(torch.cat([latents, latents]), index)
            noise = self.transformer(scaled, t.expand(scaled.shape[0]), both)
            without, conditional = noise.chunk(2)
            latents = self.scheduler.step(without + guidance * (conditional - without), index, latents)
        return latents


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--images", type=int, default=3)
    args = parser.parse_args()
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = SIZES[args.size]
    pipeline = ImagePipeline(DiffusionTransformer(config).to(device, dtype).eval(), EulerScheduler(), device)
    texts = torch.randn(args.images, 1, 8, config.text_dim, generator=torch.Generator().manual_seed(1))
    digest = hashlib.sha256()
    start = time.perf_counter()
    for seed, text in enumerate(texts.to(device, dtype)):
        latents = pipeline.generate(text, args.steps, guidance=4.0, seed=seed)
        digest.update(latents.float().cpu().numpy().tobytes())
    seconds = time.perf_counter() - start
    print(f"checksum {digest.hexdigest()[:16]}")
    print(f"{args.images} images, {seconds / args.images / args.steps * 1e3:.2f} ms a step", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
