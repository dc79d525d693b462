"""Steps, tiles, caches that passes hand on, and heads of which each pass asks another one."""

import torch
from torch import nn


class Pipeline:
    def __init__(self, transformer: nn.Module, scheduler):
        self.transformer = transformer
        self.scheduler = scheduler

    def progress_bar(self, items):
        return items

    @torch.inference_mode()
    def __call__(self, latents: torch.Tensor, embeds: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        timesteps_tensor = self.scheduler.timesteps.to("cuda")
        sample = latents
        for i, t in enumerate(self.progress_bar(timesteps_tensor)):
            doubled = torch.cat([sample] * 2)
            output = self.transformer(doubled, embeds, t).sample
            negative, positive = output.chunk(2)
            sample = self.scheduler.step(negative + 4.0 * (positive - negative), t, sample).prev_sample
        return sample


class Autoencoder(nn.Module):
    def __init__(self, encoder: nn.Module, tile: int):
        super().__init__()
        self.encoder = encoder
        self.tile = tile
        self.feat_map = []

    @torch.inference_mode()
    def tiled_encode(self, images: torch.Tensor) -> torch.Tensor:
        rows = range(0, images.shape[-2], self.tile)
        columns = [list(range(0, images.shape[-1], self.tile))]
        found = []
        for row in rows:
            for column in columns[0]:
                found.append(self.encoder(images[..., row : row + self.tile, column : column + self.tile]))
        return torch.cat(found)

    @torch.inference_mode()
    def encode(self, video: torch.Tensor) -> torch.Tensor:
        found = []
        for frame in video:
            found.append(self.encoder(frame[None], feat_cache=self.feat_map))
        return torch.cat(found)

    @torch.inference_mode()
    def carried(self, video: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        for frame in video:
            mixed = torch.cat([frame, state])
            hidden = self.encoder(mixed)
            state = hidden[:, :1] + mixed
        return state


class Detector(nn.Module):
    def __init__(self, decoder: nn.Module, heads: nn.ModuleList):
        super().__init__()
        self.decoder = decoder
        self.bbox_embed = heads

    @torch.inference_mode()
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden_states = self.decoder(images)
        return torch.stack([self.bbox_embed[i](hidden_states[:, i]) for i in range(hidden_states.shape[1])])
