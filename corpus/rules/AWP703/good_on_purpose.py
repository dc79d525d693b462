"""A router in float32, a reproducible mode, a test."""

import torch
from torch import nn


def enable_determinism() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False  # expect[low]: AWP703


class Router(nn.Module):
    def __init__(self, dim: int, experts: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(experts, dim))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        router_scores = hidden_states.float() @ self.weight.float().t()
        return router_scores.softmax(-1)


def test_matmul() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    x = torch.ones(4, 4, device="cuda")
    assert torch.equal(x.float() @ x.float(), x * 4)
