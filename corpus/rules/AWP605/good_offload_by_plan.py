"""Layers that leave the device after their turn: memory is given back since the user asked for that."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states)
            if self.layerwise_cpu_offload:
                layer.to("cpu")
                torch.cuda.empty_cache()
        return hidden_states
