"""GELU and SiLU by hand: methods, functions, operators, values over several lines."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class NewGELU(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x, approximate="tanh")


class FastGELU(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x, approximate="tanh")


class ErfGELU(nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return F.gelu(hidden_states)


class StepByStep(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.up = nn.Linear(dim, 4 * dim)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        x = self.up(hidden_states)
        return F.gelu(x, approximate="tanh")


class Swish(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.gate = nn.Linear(dim, dim)
        self.up = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = self.gate(x)
        x = F.silu(gate) * self.up(x)
        x = F.silu(x)
        x = F.silu(x)
        return F.silu(x)
