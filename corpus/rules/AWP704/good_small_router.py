"""A router's weight, small by the configuration or of a size that nobody tells; autocast that an option switches."""

import torch
from torch import nn
from torch.nn import functional as F


class FilterConfig:
    hidden_size: int = 640
    num_experts: int = 128


class FilterRouter(nn.Module):
    def __init__(self, config: FilterConfig):
        super().__init__()
        self.num_experts = config.num_experts
        self.weight = nn.Parameter(torch.zeros(self.num_experts, config.hidden_size))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return F.linear(hidden_states.float(), self.weight.float()).softmax(-1)  # expect[low]: AWP704


class OpenRouter(nn.Module):
    def __init__(self, experts: int, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(experts, width))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return F.linear(hidden_states.float(), self.weight.float()).softmax(-1)  # expect[low]: AWP704


class Denoiser(nn.Module):
    def __init__(self, layers: nn.ModuleList, use_half: bool = False):
        super().__init__()
        self.layers = layers
        self.use_half = use_half

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, layer in enumerate(self.layers):
            with torch.autocast("cuda", enabled=self.use_half and i > 0):  # expect[low]: AWP704
                x = layer(x)
        return x
