"""The class for flash attention of a table that names another by default, as old model files kept them."""

import torch
from torch import nn
from torch.nn import functional as F


def unpadded(attention_mask: torch.Tensor) -> tuple:
    lengths = attention_mask.sum(dim=-1, dtype=torch.int32)
    longest = lengths.max().item()  # expect[low]: AWP108
    return F.pad(lengths.cumsum(0), (1, 0)), longest


class PlainAttention(nn.Module):
    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return hidden_states * attention_mask[..., None]


class PlainFlashAttention2(PlainAttention):
    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        bounds, longest = unpadded(attention_mask)
        return hidden_states[:, :longest] * bounds[-1]


ATTENTION = {"sdpa": PlainAttention, "flash_attention_2": PlainFlashAttention2}


class Layer(nn.Module):
    def __init__(self, config) -> None:
        super().__init__()
        self.self_attn = PlainFlashAttention2()

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.self_attn(hidden_states, attention_mask)


class Tower(nn.Module):
    def __init__(self, config) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states, attention_mask)
        return hidden_states
