"""A vision tower that takes rows of a device grid as sizes."""

import torch
from torch import nn


class Tower(nn.Module):
    def rot_pos_emb(self, grid_thw: torch.Tensor) -> torch.Tensor:
        pos_ids = []
        for t, h, w in grid_thw.tolist():
            rows = torch.arange(h).unsqueeze(1).expand(-1, w)
            pos_ids.append(rows.flatten().repeat(t, 1))
        return torch.cat(pos_ids, dim=0)

    def forward(self, hidden_states: torch.Tensor, grid_thw: torch.Tensor) -> torch.Tensor:
        return hidden_states + self.rot_pos_emb(grid_thw).to(hidden_states.device)
