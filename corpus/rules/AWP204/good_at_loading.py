"""Loops over experts that no token goes through: weights that are stacked, converted and counted when a model loads."""

import torch
from torch import nn


class StackedExperts(nn.Module):
    def __init__(self, experts: nn.ModuleList):
        super().__init__()
        self.weight = nn.Parameter(torch.stack([expert.weight for expert in experts]))

    @classmethod
    def from_checkpoint(cls, tensors: dict, num_experts: int) -> "StackedExperts":
        experts = nn.ModuleList()
        for expert_idx in range(num_experts):
            linear = nn.Linear(8, 8, bias=False)
            linear.weight.data.copy_(tensors[f"experts.{expert_idx}.weight"] @ torch.eye(8))
            experts.append(linear)
        return cls(experts)

    def load_weights(self, tensors: dict) -> None:
        for expert_idx in range(self.weight.shape[0]):
            self.weight.data[expert_idx] = torch.matmul(tensors[f"up.{expert_idx}"], tensors[f"down.{expert_idx}"])

    def forward(self, x: torch.Tensor, picked: torch.Tensor) -> torch.Tensor:
        return torch.bmm(self.weight[picked], x.unsqueeze(-1)).squeeze(-1)
