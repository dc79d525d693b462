"""The dropout is in a part of the model."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(self.linear(x))


class Encoder(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.blocks(x)


encoder = Encoder(64, 4).to("cuda")
encoder.load_state_dict(torch.load("weights.pt"))  # expect: AWP702


@torch.inference_mode()
def predict(x: torch.Tensor) -> torch.Tensor:
    return encoder(x.to("cuda"))
