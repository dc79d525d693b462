"""Keys and values that a mixin keeps for attention, copied whole at every token."""

import torch
import torch.nn.functional as F
from torch import nn


class Remembering:
    keys = None
    values = None

    def extend(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.keys is None:
            self.keys, self.values = k, v
        else:
            self.keys = torch.cat([self.keys, k], dim=2)  # expect: AWP506
            self.values = torch.cat([self.values, v], dim=2)  # expect: AWP506
        return self.keys, self.values


class Attention(nn.Module, Remembering):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor, causal: bool) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        k, v = self.extend(k, v)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2))


class Decoder(nn.Module):
    def __init__(self, width: int, depth: int, vocabulary: int):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList([Attention(width, 8) for _ in range(depth)])
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids: torch.Tensor, causal: bool = False) -> torch.Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer(x, causal)
        return self.head(x[:, -1])


@torch.inference_mode()
def complete(model: Decoder, ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    token = model(ids, causal=True).argmax(-1, keepdim=True)
    tokens = [token]
    for _ in range(max_new_tokens - 1):
        token = model(token).argmax(-1, keepdim=True)
        tokens.append(token)
    return torch.cat(tokens, dim=1)
