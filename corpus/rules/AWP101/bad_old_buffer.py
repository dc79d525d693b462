"""Rows of a buffer that the old constructor makes beside the source tokens, read one by one in every step."""

import torch
from torch import nn


class Searcher:
    def __init__(self, model: nn.Module, size: int):
        self.model = model
        self.size = size

    @torch.no_grad()
    def generate(self, sample, max_new_tokens: int) -> torch.Tensor:
        source = sample["net_input"]["src_tokens"]
        rows = source.size(0)
        tokens = source.new(rows, max_new_tokens + 1).long().fill_(0)
        for step in range(max_new_tokens):
            scores = self.model(source, tokens[:, : step + 1])
            for row in range(rows):  # expect: AWP205
                seen = tokens[row, : step + 1].tolist()  # expect: AWP101
                scores[row, seen[-self.size :]] -= 1.0
            tokens[:, step + 1] = scores.argmax(-1)
        return tokens
