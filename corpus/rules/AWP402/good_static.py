"""Compiled code that only looks at shapes, flags and None; masks by ``where``; reads in code that is not compiled."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int, causal: bool):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.causal = causal

    @torch.compile
    def forward(self, hidden_states: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        if hidden_states.shape[1] > 1 and self.causal:
            hidden_states = hidden_states.roll(1, dims=1)
        if mask is not None:
            hidden_states = torch.where(mask[..., None], hidden_states, 0.0)
            hidden_states[mask] = 0.0
        if self.training:
            print("training")
        return self.proj(hidden_states)


class Sampler(nn.Module):
    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        if logits.isnan().any():
            raise ValueError("the logits are not numbers")
        return logits.argmax(-1)


def report(logits: torch.Tensor) -> None:
    print(logits.max().item())
