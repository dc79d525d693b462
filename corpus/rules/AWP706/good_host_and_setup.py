"""On the host, in set-up, in a test."""

import numpy as np
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        freqs = 1.0 / 10000 ** (torch.arange(0, dim, 2, dtype=torch.float64, device="cuda") / dim)
        self.register_buffer("freqs", freqs.float())


@torch.inference_mode()
def generate(model: nn.Module, latents: torch.Tensor, steps: int) -> float:
    latents = latents.to("cuda")
    totals = []
    for _ in range(steps):
        latents = model(latents)
        totals.append(latents.mean().cpu().double())
        weights = torch.from_numpy(np.linspace(0.0, 1.0, 8))
    return float(torch.stack(totals).sum() * weights.sum())


def test_double() -> None:
    for _ in range(4):
        assert torch.ones(4, device="cuda").double().dtype == torch.float64
