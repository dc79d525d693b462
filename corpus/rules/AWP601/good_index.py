"""Indices that are on the device, numbers, slices, lists of lists, host tensors indexed on the host, set-up."""

from typing import List

import torch
from transformers import LogitsProcessor


class Masked(LogitsProcessor):
    def __init__(self, banned: List[List[int]], device: str):
        table = torch.zeros(len(banned), 32000, dtype=torch.bool)
        for row, banned_tokens in enumerate(banned):
            table[row, banned_tokens] = True
        self.table = table.to(device)
        self.banned = banned

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        best = scores.topk(5).indices
        for row in range(scores.shape[0]):
            ids = best[row]
            scores[row, ids] = scores[row, ids] * 0.5
            scores[row, 0] = -float("inf")
            scores[row, :8] = -float("inf")
        return scores.masked_fill(self.table, -float("inf"))


class Rows(torch.nn.Module):
    def __init__(self, layers: torch.nn.ModuleList, names: List[str]):
        super().__init__()
        self.layers = layers
        self.names = names
        self.register_buffer("order", torch.arange(8).flip(0))

    def forward(self, hidden_states: torch.Tensor, cpu_lengths: List[int]) -> torch.Tensor:
        for index, layer in enumerate(self.layers):
            name = self.names[index]
            length = cpu_lengths[index]
            picked = hidden_states[:, self.order]
            part = hidden_states[..., :length]
            slicer = [slice(None) for _ in hidden_states.shape]
            slicer[1] = slice(0, 4)
            part = part + hidden_states[tuple(slicer)][..., :length]
            place = tuple([0, 1])
            corner = hidden_states[place]
            part = part + corner
            last = hidden_states[:, -1]
            hidden_states = layer(picked, part, last, name)
        return hidden_states
