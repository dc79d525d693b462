"""The positions are chosen before the head, or the caller can choose them."""

import torch
from torch import nn


class SlicedForCausalLM(nn.Module):
    def __init__(self, model: nn.Module, dim: int, vocab: int):
        super().__init__()
        self.model = model
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, input_ids: torch.Tensor, logits_to_keep: int = 0) -> torch.Tensor:
        hidden_states = self.model(input_ids)
        rows = slice(-logits_to_keep, None) if logits_to_keep else slice(None)
        return self.lm_head(hidden_states[:, rows, :])


class LastForCausalLM(nn.Module):
    def __init__(self, model: nn.Module, dim: int, vocab: int):
        super().__init__()
        self.model = model
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        hidden_states = self.model(input_ids)
        last = hidden_states[:, -1:]
        logits = self.lm_head(last)
        return logits[:, -1]


class Gathered(nn.Module):
    def __init__(self, dim: int, vocab: int):
        super().__init__()
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, hidden_states: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        picked = hidden_states.gather(1, ends[:, None, None].expand(-1, 1, hidden_states.shape[-1]))
        logits = self.lm_head(picked)
        return logits[:, -1]
