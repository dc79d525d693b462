"""The next statement needs the result; only shapes in between; asynchronous already; nothing heavy to hide it behind."""

import torch
import torch.distributed as dist
from torch import nn


class Row(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.down = nn.Linear(dim, dim)
        self.up = nn.Linear(dim, dim)

    def forward(self, hidden_states: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        out = self.down(hidden_states)
        dist.all_reduce(out)
        out = self.up(out)
        dist.all_reduce(out)
        batch, length = residual.shape[:2]
        scale = batch * length
        out = out * scale
        work = dist.all_reduce(out, async_op=True)
        extra = self.up(residual)
        work.wait()
        return out + extra
