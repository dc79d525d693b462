"""The place of a timestep is looked up once, for the noise that an image begins with, not at every step."""

import torch
from diffusers import DiffusionPipeline


class Scheduler:
    def __init__(self, timesteps: torch.Tensor):
        self.timesteps = timesteps.to("cuda")
        self.begin_index = None

    def index_for_timestep(self, timestep: torch.Tensor, table: torch.Tensor) -> int:
        return (table == timestep).nonzero()[0].item()

    def scale_noise(self, sample: torch.Tensor, timestep: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        if self.begin_index is None:
            indices = [self.index_for_timestep(t, self.timesteps) for t in timestep]
        else:
            indices = [self.begin_index] * timestep.shape[0]
        return sample + noise * indices[0]


class InpaintPipeline(DiffusionPipeline):
    def __init__(self, unet, scheduler: Scheduler):
        self.unet = unet
        self.scheduler = scheduler

    @torch.no_grad()
    def __call__(self, image: torch.Tensor, latents: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        for i, t in enumerate(self.scheduler.timesteps):
            latents = latents - self.unet(latents, t)
            latents = latents + self.scheduler.scale_noise(image, t[None], noise)
        return latents
