"""The whole row through a model of no telling name, and through a method of the project's own module."""

import torch
from torch import nn


class Summariser(nn.Module):
    def __init__(self, dim: int, vocab: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.mix = nn.Linear(dim, dim)
        self.head = nn.Linear(dim, vocab)

    def decode(self, tokens: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        return self.head(self.mix(self.embed(tokens)) + memory)


class Runner:
    def __init__(self, net: Summariser, draft: nn.Module, limit: int) -> None:
        self.model = net
        self.draft = draft
        self.limit = limit

    @torch.no_grad()
    def generate(self, output: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        for _ in range(self.limit):  # expect: AWP509
            scores = self.model.decode(output, memory)[:, -1]
            following = scores.argmax(dim=-1)
            output = torch.cat((output, following[:, None]), dim=1)
        return output

    @torch.no_grad()
    def sample(self, tokens: torch.Tensor, count: int) -> torch.Tensor:
        for _ in range(count):  # expect: AWP509
            chances = self.draft(tokens)[:, -1].softmax(dim=-1)
            tokens = torch.cat((tokens, torch.multinomial(chances, 1)), dim=1)
        return tokens
