"""Stretches along the time of all videos: those of a causal decoder follow one another."""

import torch
from torch import nn
from transformers import AutoModel


class Video(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decoder = AutoModel.from_pretrained("decoder")
        self.encoder = AutoModel.from_pretrained("encoder")

    def decode(self, z: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.decoder(z[:, :, i : i + 1]) for i in range(z.shape[2])], dim=2)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        latents = []
        for part in torch.split(frames, 8, dim=2):
            latents.append(self.encoder(part))
        return torch.cat(latents, dim=2)
