"""One collective for all, one a layer where the next needs it, asynchronous ones, set-up."""

import torch
import torch.distributed as dist
from torch import nn


class Model(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers
        for parameter in self.parameters():
            dist.broadcast(parameter.data, src=0)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states)
            dist.all_reduce(hidden_states)
        parts = hidden_states.chunk(4, dim=-1)
        handles = []
        for part in parts:
            handles.append(dist.all_reduce(part, async_op=True))
        for handle in handles:
            handle.wait()
        packed = torch.stack(parts)
        dist.all_reduce(packed)
        return packed
