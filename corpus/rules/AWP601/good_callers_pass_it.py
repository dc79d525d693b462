"""Coordinates that every caller makes once before its steps and passes; what the model makes without them is not run."""

import torch
from torch import nn


class VideoRope(nn.Module):
    def prepare(self, frames: int, device: torch.device) -> torch.Tensor:
        grid = torch.arange(frames, device=device)
        return grid * torch.tensor((8, 32, 32), device=device)[:, None]

    def forward(self, coords: torch.Tensor) -> torch.Tensor:
        return coords.cos()


class VideoTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.rope = VideoRope()

    def forward(
        self, hidden_states: torch.Tensor, timestep: torch.Tensor, coords: torch.Tensor | None = None
    ) -> torch.Tensor:
        if coords is None:
            coords = self.rope.prepare(hidden_states.shape[1], hidden_states.device)
        return hidden_states + self.rope(coords).sum()


class VideoPipeline:
    def __init__(self, transformer: VideoTransformer):
        self.transformer = transformer

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, timesteps: torch.Tensor, guided: bool) -> torch.Tensor:
        coords = self.transformer.rope.prepare(latents.shape[1], latents.device)
        if guided:
            coords = coords.repeat(2, 1)
        for t in timesteps:
            latents = latents - self.transformer(hidden_states=latents, timestep=t, coords=coords)
        return latents
