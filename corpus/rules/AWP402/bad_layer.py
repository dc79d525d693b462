"""A compiled layer that asks the host in several ways."""

import logging
import time

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Router(nn.Module):
    def __init__(self, dim: int, experts: int):
        super().__init__()
        self.gate = nn.Linear(dim, experts)
        self.out = nn.Linear(dim, dim)

    @torch.compile(mode="reduce-overhead")
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        scores = self.gate(hidden_states).softmax(-1)
        best = scores.max().item()  # expect: AWP402
        print("best", best)  # expect: AWP402
        if scores.sum() > 1.5:  # expect: AWP402
            scores = scores * 0.5
        kept = hidden_states[scores[..., 0] > 0.1]  # expect: AWP402
        logger.info("kept some")  # expect: AWP402
        return self.out(hidden_states) * best + kept.mean()


@torch.compile
def timed(hidden_states: torch.Tensor) -> torch.Tensor:
    hidden_states = hidden_states + time.time()  # expect[low]: AWP402
    return hidden_states * 2
