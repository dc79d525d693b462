"""All positions are wanted: scoring, a loss, a return to the caller, another index."""

import torch
import torch.nn.functional as F
from torch import nn


class Scorer(nn.Module):
    def __init__(self, dim: int, vocab: int):
        super().__init__()
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        self.head = nn.Linear(dim, 4)

    def forward(self, hidden_states: torch.Tensor, input_ids: torch.Tensor) -> torch.Tensor:
        logits = self.lm_head(hidden_states)
        last = logits[:, -1]
        scores = F.log_softmax(logits[:, :-1], dim=-1)
        labels = self.head(hidden_states)
        first = labels[:, 0]
        return last.sum() + scores.sum() + first.sum()


class Plain(nn.Module):
    def __init__(self, dim: int, vocab: int):
        super().__init__()
        self.head = nn.Linear(dim, vocab)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x)
