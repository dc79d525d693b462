"""Loops over layers, over batches, and training loops."""

import torch
from torch import nn


class Stack(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states


def train(model: Stack, loader, optimizer, steps: int):
    for step in range(steps):
        loss = model(next(loader)).mean()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    stack = Stack(nn.ModuleList([nn.Linear(8, 8)]))
    print(stack(torch.zeros(1, 8)))
