"""Set-up, shallow copies, training, tensors cloned on purpose."""

import copy

import torch


class Stack(torch.nn.Module):
    def __init__(self, layer: torch.nn.Module, depth: int):
        super().__init__()
        self.layers = torch.nn.ModuleList([copy.deepcopy(layer) for _ in range(depth)])

    def forward(self, hidden_states: torch.Tensor, options: dict) -> torch.Tensor:
        for layer in self.layers:
            options = copy.copy(options)
            hidden_states = layer(hidden_states.clone(), **dict(options))
        return hidden_states


def train(model: Stack, optimizer, steps: int):
    best = None
    for _ in range(steps):
        model(torch.zeros(1, 8), {}).mean().backward()
        optimizer.step()
        best = copy.deepcopy(model)
    return best
