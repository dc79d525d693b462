"""Weights that are used, returned, or not computed; other modules with two results."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.rnn = nn.LSTM(dim, dim, batch_first=True)

    def forward(self, x: torch.Tensor):
        out, weights = self.attn(x, x, x)
        fast, _ = self.attn(x, x, x, need_weights=False)
        run, _ = self.rnn(x)
        both = self.attn(x, x, x)
        return out + fast + run, weights, both


class Explain:
    def __init__(self, encoder: nn.Module):
        self.encoder = encoder

    @torch.inference_mode()
    def predict(self, ids: torch.Tensor):
        out = self.encoder(ids, output_attentions=True)
        return out.last_hidden_state, out.attentions
