"""Attention of channels: the scores are small, and the heads as wide as the image has positions."""

import torch
from einops import rearrange
from torch import nn


class ChannelAttention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        q = q * n**-0.5
        attn = q.transpose(-1, -2) @ k
        attn = attn.softmax(dim=-1)  # expect[low]: AWP501
        x = (attn @ v.transpose(-1, -2)).transpose(-1, -2)
        return self.proj(x.transpose(1, 2).reshape(b, n, c))


class TransposedAttention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.temperature = nn.Parameter(torch.ones(heads, 1, 1))
        self.qkv = nn.Conv2d(dim, dim * 3, 1)
        self.proj = nn.Conv2d(dim, dim, 1)

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        attn = (q @ k.transpose(-2, -1)) * self.temperature
        attn = attn.softmax(dim=-1)  # expect[low]: AWP501
        return attn @ v

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, c, h, w = x.shape
        to_heads = "b (head c) h w -> b head c (h w)"
        q, k, v = (rearrange(part, to_heads, head=self.heads) for part in self.qkv(x).chunk(3, dim=1))
        q, k = nn.functional.normalize(q, dim=-1), nn.functional.normalize(k, dim=-1)
        return self.proj(self.attend(q, k, v).reshape(b, c, h, w))


class Stage(nn.Module):
    def __init__(self, dim: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([ChannelAttention(dim, 8) for _ in range(depth)])
        self.blocks = nn.ModuleList([TransposedAttention(dim, 8) for _ in range(depth)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        for block in self.blocks:
            x = block(x)
        return x
