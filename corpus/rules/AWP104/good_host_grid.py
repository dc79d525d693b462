"""The grid is read once, as a list; host tensors; once a request."""

import torch
from torch import nn


class Tower(nn.Module):
    def forward(self, hidden_states: torch.Tensor, grid_thw: torch.Tensor) -> torch.Tensor:
        pos_ids = []
        for t, h, w in grid_thw.tolist():
            rows = torch.arange(h, device=hidden_states.device).unsqueeze(1).expand(-1, w)
            pos_ids.append(rows.flatten().repeat(t))
        return hidden_states + torch.cat(pos_ids, dim=0).unsqueeze(-1)


class Padder(nn.Module):
    def __init__(self, blocks: nn.ModuleList):
        super().__init__()
        self.blocks = blocks

    def forward(self, hidden_states: torch.Tensor, seq_lens_cpu: torch.Tensor) -> torch.Tensor:
        lengths = torch.tensor([3, 4, 5])
        for block in self.blocks:
            hidden_states = block(hidden_states)[:, : lengths[0]]
        return hidden_states
