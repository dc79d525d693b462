"""A model without a layer that training changes: there is nothing to switch."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gamma * self.norm(x)


class TextEmbedding(nn.Module):
    def __init__(self, tokens: int, width: int, depth: int):
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.blocks = nn.Sequential(*[Scaled(width) for _ in range(depth)])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.blocks(self.embed(ids))


embedding = TextEmbedding(1000, 64, 4).to("cuda")
embedding.load_state_dict(torch.load("weights.pt"))


@torch.inference_mode()
def predict(ids: torch.Tensor) -> torch.Tensor:
    return embedding(ids.to("cuda"))
