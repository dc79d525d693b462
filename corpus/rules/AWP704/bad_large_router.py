"""A large router's weight, as its configuration tells, cast in every layer."""

import torch
from torch import nn
from torch.nn import functional as F


class RouteConfig:
    hidden_size: int = 6144
    num_experts: int = 256
    num_shared: int = 1


class RouteRouter(nn.Module):
    def __init__(self, config: RouteConfig):
        super().__init__()
        self.total = config.num_experts + config.num_shared
        self.weight = nn.Parameter(torch.zeros(self.total, config.hidden_size))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return F.linear(hidden_states.float(), self.weight.float()).softmax(-1)  # expect: AWP704


class RouteModel(nn.Module):
    def __init__(self, config: RouteConfig, layers: int):
        super().__init__()
        self.layers = nn.ModuleList(RouteRouter(config) for _ in range(layers))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = hidden_states * layer(hidden_states).amax(-1, keepdim=True)
        return hidden_states
