"""Things that depend on the pass, start fresh on purpose, are random, or run in one pass only."""

import torch
from torch import nn


class Pipeline:
    def __init__(self, unet: nn.Module, scheduler):
        self.unet = unet
        self.scheduler = scheduler
        self.shift = torch.zeros(1, device="cuda")

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, prompt_embeds: torch.Tensor, timesteps: torch.Tensor):
        latents = latents.to("cuda")
        prompt_embeds = prompt_embeds.to("cuda")
        mask = None
        for i, t in enumerate(timesteps):
            both = torch.cat([latents] * 2)
            noise = torch.randn(latents.shape, device="cuda")
            scratch = torch.zeros(latents.shape, device="cuda")
            scratch[:, 0] = 1.0
            if mask is None:
                mask = prompt_embeds > 0
            if i == 0:
                latents = latents * (prompt_embeds.mean() + 1.0)
            self.shift = self.shift + 1.0
            moved = prompt_embeds * self.shift
            out = torch.empty(latents.shape, device="cuda")
            width = prompt_embeds.shape[1] // 2 + 1
            cast = prompt_embeds.to(latents.dtype)
            view = prompt_embeds.unsqueeze(0).expand(2, -1, -1)
            latents = self.unet(both, t, moved, noise + scratch + out.fill_(0), cast[:width], view, mask)
        return latents
