"""Weights of which more is computed, weights that are stored, and a handful of pooled keys: low confidence."""

import torch
import torch.nn.functional as F
from torch import nn


class PointAttention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(q, k.transpose(-2, -1)) * q.shape[-1] ** -0.5
        weights = torch.softmax(scores, dim=-1)  # expect[low]: AWP501
        out = torch.matmul(weights, v)
        moved = torch.sum(weights[..., None] * points[:, None], dim=-2)
        return torch.cat([out, moved], dim=-1)


class BlockAttention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block: int) -> tuple:
        probs = torch.zeros(*q.shape[:-1], k.shape[-2], device=q.device)
        scores = torch.matmul(q[:, :, -block:], k.transpose(-2, -1))
        weights = F.softmax(scores, dim=-1)  # expect[low]: AWP501
        out = torch.matmul(weights, v)
        probs[:, :, -block:] = weights
        return out, probs


class ImagePoolingAttention(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.pools = nn.ModuleList([nn.AdaptiveMaxPool2d((size, size)) for _ in range(3)])

    def forward(self, text: torch.Tensor, maps: list) -> torch.Tensor:
        keys = torch.cat([pool(image).flatten(2) for image, pool in zip(maps, self.pools)], dim=-1).transpose(1, 2)
        scores = torch.matmul(text, keys.transpose(-2, -1))
        weights = F.softmax(scores, dim=-1)  # expect[low]: AWP501
        return torch.matmul(weights, keys)
