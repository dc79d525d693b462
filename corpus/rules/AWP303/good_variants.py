"""Things that no built-in function computes: other constants, other gates, sums over everything."""

import torch
from torch import nn


class Gates(nn.Module):
    def forward(self, x: torch.Tensor, gate: torch.Tensor, hidden_states: torch.Tensor) -> torch.Tensor:
        quick = x * torch.sigmoid(1.702 * x)
        gated = x * torch.sigmoid(gate)
        scaled = 0.7 * x * (1.0 + torch.tanh(x))
        bent = 0.5 * x * (1.0 + torch.tanh(0.5 * (x + 0.03 * x**3)))
        other = 0.5 * x * (1.0 + torch.erf(x))
        share = torch.exp(x) / torch.exp(gate).sum(-1, keepdim=True)
        everything = torch.exp(x) / torch.exp(x).sum()
        entropy = -(torch.softmax(x, -1) * torch.log_softmax(x, -1)).sum(-1)
        clipped = torch.where(x > 0, x, gate)
        old = x
        x = self.mix(x)
        swapped = x * torch.sigmoid(old)
        return quick + gated + scaled + bent + other + share + everything + entropy + clipped + swapped

    def mix(self, x: torch.Tensor) -> torch.Tensor:
        return x.flip(-1)
