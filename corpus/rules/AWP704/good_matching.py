"""A cast that does nothing where the types agree, a vector of a norm, training."""

import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim, dim))
        self.norm = nn.LayerNorm(dim)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        hidden_states = F.linear(hidden_states, self.weight.to(hidden_states.dtype))
        return hidden_states * self.norm.weight.float()  # expect[low]: AWP704


def train(model: nn.Module, loader, optimizer) -> None:
    for batch in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(batch.cuda()).mean()
        loss.backward()
        optimizer.step()
