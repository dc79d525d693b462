"""Experts that look for their rows one after the other: where a pass does nothing without rows, and where it does."""

import torch
import torch.nn.functional as F
from torch import nn


class Routed(nn.Module):
    def __init__(self, dim: int, num_experts: int):
        super().__init__()
        self.num_experts = num_experts
        self.gate = nn.Linear(dim, num_experts)
        self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(num_experts)])

    def pick(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return F.softmax(self.gate(x), dim=-1).topk(2)


class Compared(Routed):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, picked = self.pick(x)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):  # expect: AWP204
            rows, slots = torch.where(picked == number)
            out.index_add_(0, rows, expert(x[rows]) * weights[rows, slots, None])
        return out


class Masked(Routed):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, picked = self.pick(x)
        mask = F.one_hot(picked, num_classes=self.num_experts).permute(2, 1, 0)
        out = torch.zeros_like(x)
        for expert_idx in range(self.num_experts):  # expect: AWP204
            slots, rows = torch.where(mask[expert_idx])
            if rows.numel() == 0:
                continue
            said = self.experts[expert_idx](x[rows])
            out[rows] += said * weights[rows, slots, None]
        return out


class First(Routed):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        best = self.gate(x).argmax(dim=-1)
        out = torch.empty_like(x)
        for i, layer in enumerate(self.experts):  # expect: AWP204
            rows = (best == i).nonzero().squeeze(1)
            out[rows] = layer(x[rows])
        return out


class Summed(Routed):
    """What is added up is made anew at every pass, rows or none."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, picked = self.pick(x)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):  # expect: AWP204
            rows, slots = torch.where(picked == number)
            out = out.index_add(0, rows, expert(x[rows]) * weights[rows, slots, None])
        return out


class Counted(Routed):
    """The load of every expert is kept, that of those without rows too."""

    def forward(self, x: torch.Tensor, load: list[int]) -> torch.Tensor:
        weights, picked = self.pick(x)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):  # expect: AWP204
            rows, slots = torch.where(picked == number)
            load.append(rows.numel())
            out.index_add_(0, rows, expert(x[rows]) * weights[rows, slots, None])
        return out


class Dropped(Routed):
    """Tokens that found no room are taken out of the choices on the way."""

    def forward(self, x: torch.Tensor, room: int) -> torch.Tensor:
        weights, picked = self.pick(x)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):  # expect: AWP204
            rows, slots = torch.where(picked == number)
            picked[rows[room:]] = -1
            out.index_add_(0, rows, expert(x[rows]) * weights[rows, slots, None])
        return out


class Last(Routed):
    """What the last expert said is read behind the loop."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights, picked = self.pick(x)
        out = torch.zeros_like(x)
        said = x
        for number, expert in enumerate(self.experts):  # expect: AWP204
            rows, slots = torch.where(picked == number)
            said = expert(x[rows]) * weights[rows, slots, None]
            out.index_add_(0, rows, said)
        return out, said
