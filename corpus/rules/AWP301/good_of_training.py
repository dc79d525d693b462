"""The branch where gradients are wanted: inference takes the fused call of the other one."""

import torch
from torch import nn
from torch.nn import functional as F


class FrozenNorm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.register_buffer("weight", torch.ones(width))
        self.register_buffer("bias", torch.zeros(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.requires_grad:
            scale = self.weight * (self.variance + 1e-5).rsqrt()
            bias = self.bias - self.mean * scale
            return x * scale.reshape(1, -1, 1, 1) + bias.reshape(1, -1, 1, 1)
        return F.batch_norm(x, self.mean, self.variance, self.weight, self.bias, training=False)
