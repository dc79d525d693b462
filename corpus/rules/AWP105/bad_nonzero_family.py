"""Sizes that only the device knows, in a mixture of experts and a decode step."""

import torch
import torch.nn.functional as F
from torch import nn


class Experts(nn.Module):
    def __init__(self, dim: int, num_experts: int):
        super().__init__()
        self.gate = nn.Linear(dim, num_experts)
        self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(num_experts)])

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        weights = F.softmax(self.gate(hidden_states), dim=-1)
        picked = weights.argmax(-1)
        out = torch.zeros_like(hidden_states)
        for index, expert in enumerate(self.experts):
            rows = torch.where(picked == index)  # expect: AWP105
            out[rows] = expert(hidden_states[rows])
            token_ids = (picked == index).nonzero(as_tuple=True)[0]  # expect: AWP105
            out.index_add_(0, token_ids, hidden_states[token_ids])
        return out


@torch.inference_mode()
def generate(model: nn.Module, input_ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    input_ids = input_ids.to("cuda")
    for _ in range(max_new_tokens):
        logits = model(input_ids)[:, -1]
        seen = torch.unique(input_ids)  # expect: AWP105
        logits[:, seen] -= 1.0
        kept = torch.masked_select(logits, logits > 0)  # expect: AWP105
        counts = (logits > 0).sum(-1)
        rows = torch.repeat_interleave(torch.arange(len(counts), device="cuda"), counts)  # expect: AWP105
        logits = logits - kept.mean() + rows.float().mean()
        input_ids = torch.cat([input_ids, logits.argmax(-1, keepdim=True)], dim=1)
    return input_ids
