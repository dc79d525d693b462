"""The cast of a weight where the GPU's own form does not serve: on the CPU and in training."""

import torch
import torch.nn.functional as F
from torch import nn
from transformers import PreTrainedModel


class Router(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(config.num_experts, config.hidden_size))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        if hidden_states.is_cuda and hidden_states.dtype == self.weight.dtype and not torch.is_grad_enabled():
            logits = torch.mm(hidden_states, self.weight.t(), out_dtype=torch.float32)
        else:
            logits = F.linear(hidden_states.float(), self.weight.float())
        return logits.softmax(-1)


class ToyModel(PreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList(Router(config) for _ in range(config.num_hidden_layers))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = hidden_states * layer(hidden_states).sum(-1, keepdim=True)
        return hidden_states
