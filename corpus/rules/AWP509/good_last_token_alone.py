"""A recurrent decoder sees the last token only; what looks at the whole row is an embedding, or no model."""

import torch
from torch import nn


class Speller:
    def __init__(self, embed: nn.Embedding, cell: nn.GRUCell, head: nn.Linear) -> None:
        self.embed = embed
        self.cell = cell
        self.head = head

    @torch.inference_mode()
    def generate(self, tokens: torch.Tensor, hidden: torch.Tensor, limit: int) -> torch.Tensor:
        for _ in range(limit):
            seen = self.embed(tokens).mean(dim=1)
            hidden = self.cell(self.embed(tokens[:, -1]) + seen, hidden)
            following = self.head(hidden).argmax(dim=-1, keepdim=True)
            tokens = torch.cat((tokens, following), dim=1)
        return tokens
