"""A router whose weight the model loads in float32, whatever the rest is loaded in: the cast finds nothing to do."""

import torch
import torch.nn.functional as F
from torch import nn
from transformers import PreTrainedModel


class Router(nn.Module):
    def __init__(self, dim: int, experts: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(experts, dim))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return F.linear(hidden_states.float(), self.weight.float())


class MoeLayer(nn.Module):
    def __init__(self, dim: int, experts: int) -> None:
        super().__init__()
        self.gate = Router(dim, experts)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.gate(hidden_states).softmax(-1)


class MoeModel(PreTrainedModel):
    _keep_in_fp32_modules_strict = ["gate.weight", "score_bias"]
