"""Scores that no fused call computes, or for which it is no faster."""

import torch
from torch import nn


class Softcapped(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = torch.bmm(q, k.transpose(1, 2))
        scores = torch.tanh(scores / 50.0) * 50.0
        probs = torch.nn.functional.softmax(scores, dim=-1)
        return torch.bmm(probs, v)


class AttnBlock(nn.Module):
    """One head as wide as the channels, in a convolution network."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.q = nn.Conv2d(channels, channels, 1)
        self.k = nn.Conv2d(channels, channels, 1)
        self.v = nn.Conv2d(channels, channels, 1)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = hidden_states.shape
        q = self.q(hidden_states).reshape(batch, channels, height * width).permute(0, 2, 1)
        k = self.k(hidden_states).reshape(batch, channels, height * width)
        weights = torch.softmax(torch.bmm(q, k) * channels**-0.5, dim=2)
        v = self.v(hidden_states).reshape(batch, channels, height * width)
        return torch.bmm(v, weights.permute(0, 2, 1)).reshape(batch, channels, height, width)


class Landmarks(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        k_landmarks = k.unflatten(-2, (8, -1)).mean(-2)
        v_landmarks = v.unflatten(-2, (8, -1)).mean(-2)
        probs = torch.softmax(torch.matmul(q, k_landmarks.transpose(-1, -2)), dim=-1)
        return torch.matmul(probs, v_landmarks)


class Clamped(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = torch.clamp(torch.bmm(q, k.transpose(1, 2)), min=-50000, max=50000)
        return torch.bmm(scores.softmax(dim=-1), v)
