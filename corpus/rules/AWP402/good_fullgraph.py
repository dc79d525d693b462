"""With ``fullgraph=True`` the compiler itself would have refused a break."""

import torch
from torch import nn


class Router(nn.Module):
    def __init__(self, dim: int, experts: int):
        super().__init__()
        self.gate = nn.Linear(dim, experts)

    @torch.compile(fullgraph=True)
    def forward(self, hidden_states: torch.Tensor, scale: float | None) -> torch.Tensor:
        scores = self.gate(hidden_states).softmax(-1)
        return scores * scores.max().item()
