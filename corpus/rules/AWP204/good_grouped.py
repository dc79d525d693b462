"""A batched product, set-up, and loops over experts that compute nothing."""

import torch
from torch import nn


class Grouped(nn.Module):
    def __init__(self, dim: int, num_experts: int):
        super().__init__()
        self.num_experts = num_experts
        self.weight = nn.Parameter(torch.zeros(num_experts, dim, dim))
        for expert_idx in range(num_experts):
            nn.init.normal_(self.weight[expert_idx] @ torch.eye(dim))

    def forward(self, x: torch.Tensor, picked: torch.Tensor) -> torch.Tensor:
        return torch.bmm(x.unsqueeze(1), self.weight[picked]).squeeze(1)

    def names(self) -> list:
        return [f"experts.{expert_idx}.weight" for expert_idx in range(self.num_experts)]


class Stack(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x
