"""Guidance in a solver's function, both halves in one forward."""

import torch
from torch import nn
from torchdiffeq import odeint


class Flow(nn.Module):
    def __init__(self, transformer: nn.Module) -> None:
        super().__init__()
        self.transformer = transformer

    @torch.no_grad()
    def sample(self, cond: torch.Tensor, text: torch.Tensor, steps: int, cfg_strength: float) -> torch.Tensor:
        def velocity(t: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            both = self.transformer(x=torch.cat([x, x]), cond=cond, text=text, time=t)
            pred, plain = both.chunk(2)
            return pred + (pred - plain) * cfg_strength

        times = torch.linspace(0, 1, steps + 1, device=cond.device)
        return odeint(velocity, torch.randn_like(cond), times)[-1]
