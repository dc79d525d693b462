"""GELU and SiLU by hand: methods, functions, operators, values over several lines."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class NewGELU(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))  # expect: AWP303


class FastGELU(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1 + torch.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x)))  # expect: AWP303


class ErfGELU(nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return hidden_states * 0.5 * (1.0 + torch.erf(hidden_states / math.sqrt(2.0)))  # expect: AWP303


class StepByStep(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.up = nn.Linear(dim, 4 * dim)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        x = self.up(hidden_states)
        inner = 0.7978845608028654 * (x + 0.044715 * x**3)
        cdf = 0.5 * (1.0 + torch.tanh(inner))
        return x * cdf  # expect: AWP303


class Swish(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.gate = nn.Linear(dim, dim)
        self.up = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = self.gate(x)
        x = gate * torch.sigmoid(gate) * self.up(x)  # expect: AWP303
        x = x * x.sigmoid()  # expect: AWP303
        x = torch.mul(x, F.sigmoid(x))  # expect: AWP303
        return x / (1 + torch.exp(-x))  # expect: AWP303
