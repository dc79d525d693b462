"""Three and two projections of one input in every layer of a decode step."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int, kv_dim: int):
        super().__init__()
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, kv_dim, bias=False)
        self.v_proj = nn.Linear(dim, kv_dim, bias=False)
        self.o_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        batch, length, _ = hidden_states.shape
        query = self.q_proj(hidden_states).view(batch, length, 8, -1).transpose(1, 2)  # expect: AWP304
        key = self.k_proj(hidden_states).view(batch, length, 8, -1).transpose(1, 2)
        value = self.v_proj(hidden_states).view(batch, length, 8, -1).transpose(1, 2)
        out = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))


class MLP(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.w1 = nn.Linear(dim, 4 * dim)
        self.w2 = nn.Linear(4 * dim, dim)
        self.w3 = nn.Linear(dim, 4 * dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))  # expect: AWP304


class Block(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.attention = Attention(dim, dim // 4)
        self.mlp = MLP(dim)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.mlp(self.attention(hidden_states))


class Decoder(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Block(dim) for _ in range(depth)])

    @torch.inference_mode()
    def generate(self, hidden_states: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        hidden_states = hidden_states.to("cuda")
        for _ in range(max_new_tokens):
            for layer in self.layers:
                hidden_states = layer(hidden_states)
        return hidden_states
