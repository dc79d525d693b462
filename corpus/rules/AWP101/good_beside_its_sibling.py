"""A form of generation that nothing calls, beside the one that is used."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def generate(self, ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        for _ in range(max_new_tokens):
            ids = torch.cat([ids, self.model(ids).argmax(-1)[:, -1:]], dim=-1)
        return ids

    def generate_custom(self, ids: torch.Tensor, max_new_tokens: int) -> list:
        found: list[list[int]] = [[] for _ in range(ids.shape[0])]
        for _ in range(max_new_tokens):
            ids = torch.cat([ids, self.model(ids).argmax(-1)[:, -1:]], dim=-1)
            for b in range(ids.shape[0]):
                found[b].append(ids[b, -1].item())  # expect[low]: AWP101
        return found
