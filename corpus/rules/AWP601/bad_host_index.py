"""Scores of a step indexed by lists of token ids that Python made."""

from typing import List

import numpy as np
import torch
from transformers import LogitsProcessor


class BannedTokens(LogitsProcessor):
    def __init__(self, banned: List[List[int]]):
        self.banned = banned

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        processed = scores.clone()
        for row, banned_tokens in enumerate(self.banned):
            processed[row, banned_tokens] = -float("inf")  # expect: AWP601
        return processed


class Grammar(LogitsProcessor):
    def __init__(self, guide, states):
        self.guide = guide
        self.states = states

    def __call__(self, input_ids: torch.LongTensor, logits: torch.FloatTensor) -> torch.FloatTensor:
        mask = torch.full_like(logits, -float("inf"))
        for i, state in enumerate(self.states):
            allowed_tokens = self.guide.next_instruction(state).tokens
            mask[i, allowed_tokens] = logits[i, allowed_tokens]  # expect: AWP601
        return mask


class Decoder(torch.nn.Module):
    def __init__(self, layers: torch.nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        order = np.argsort(np.arange(8)[::-1])
        rows = torch.arange(hidden_states.shape[0])
        kept = [index for index in range(8) if index % 3]
        for layer in self.layers:
            hidden_states = hidden_states[rows] + hidden_states[kept].mean()  # expect: AWP601
            picked = hidden_states[:, order]  # expect: AWP601
            first = hidden_states[:, [0, 2]]  # expect: AWP601
            weights = hidden_states.new_tensor([1.0, 2.0])  # expect: AWP601
            ids = torch.cuda.LongTensor([1, 2, 3])  # expect: AWP601
            first = first * weights[0] + ids[0]
            hidden_states = layer(picked, first)
        return hidden_states
