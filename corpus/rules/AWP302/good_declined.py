"""Statistics that no built-in norm has, and norms whose authors say why they do not call it."""

import torch
from torch import nn


class SampleDeviationLayer(nn.Module):
    def forward(self, target: torch.Tensor) -> torch.Tensor:
        mean = target.mean(dim=-1, keepdim=True)
        variance = target.var(dim=-1, keepdim=True)
        return (target - mean) / (variance + 1e-6) ** 0.5


class FlowNormLayer(nn.Module):
    # nn.LayerNorm gives other numbers for a single channel in the releases that are supported
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        mean = hidden_states.mean(-1, keepdim=True)
        variance = hidden_states.var(-1, unbiased=False, keepdim=True)
        return (hidden_states - mean) * torch.rsqrt(variance + 1e-5)
