"""Keys and values of the past copied at every token."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, hidden_states: torch.Tensor, layer_past: tuple = None):
        query, key, value = self.qkv(hidden_states).chunk(3, dim=-1)
        if layer_past is not None:
            past_key, past_value = layer_past
            key = torch.cat((past_key, key), dim=-2)  # expect: AWP506
            value = torch.cat((past_value, value), dim=-2)  # expect: AWP506
        out = nn.functional.scaled_dot_product_attention(query, key, value)
        return out, (key, value)


class Cached(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.k_proj = nn.Linear(dim, dim)
        self.k_cache = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        k = self.k_proj(x)
        if self.k_cache is not None:
            k = torch.cat([self.k_cache, k], dim=1)  # expect: AWP506
        self.k_cache = k
        return k


class Model(nn.Module):
    def __init__(self, dim: int, depth: int, vocabulary: int):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.layers = nn.ModuleList([Attention(dim) for _ in range(depth)])
        self.cached = Cached(dim)
        self.lm_head = nn.Linear(dim, vocabulary)

    def forward(self, ids: torch.Tensor, past: list) -> tuple:
        x = self.embed(ids)
        present = []
        for layer, layer_past in zip(self.layers, past):
            x, pair = layer(x, layer_past)
            present.append(pair)
        x = x + self.cached(x)[:, -x.shape[1] :]
        return self.lm_head(x[:, -1]), present


@torch.inference_mode()
def generate(model: Model, ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    past = [None] * len(model.layers)
    tokens = [ids]
    for _ in range(max_new_tokens):
        logits, past = model(tokens[-1], past)
        tokens.append(logits.argmax(-1, keepdim=True))
    return torch.cat(tokens, dim=1)
