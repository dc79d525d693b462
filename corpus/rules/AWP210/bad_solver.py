"""Guidance in the function that a solver of differential equations asks at every step."""

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
            pred = self.transformer(x=x, cond=cond, text=text, time=t, drop=False)
            if cfg_strength < 1e-5:
                return pred
            plain = self.transformer(x=x, cond=cond, text=text, time=t, drop=True)  # expect: AWP210
            return pred + (pred - plain) * cfg_strength

        times = torch.linspace(0, 1, steps + 1, device=cond.device)
        return odeint(velocity, torch.randn_like(cond), times)[-1]
