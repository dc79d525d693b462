"""One product, split afterwards."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.qkv_proj = nn.Linear(dim, 3 * dim)
        self.gate_up_proj = nn.Linear(dim, 8 * dim)
        self.down_proj = nn.Linear(4 * dim, dim)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv_proj(hidden_states).chunk(3, dim=-1)
        out = nn.functional.scaled_dot_product_attention(query, key, value)
        gate, up = self.gate_up_proj(out).chunk(2, dim=-1)
        return self.down_proj(nn.functional.silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Attention(dim) for _ in range(depth)])

    @torch.inference_mode()
    def generate(self, hidden_states: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        for _ in range(max_new_tokens):
            for layer in self.layers:
                hidden_states = layer(hidden_states)
        return hidden_states
