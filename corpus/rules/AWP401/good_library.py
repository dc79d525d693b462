"""A library's pipeline: whether to compile is its user's choice."""

import torch


class ImagePipeline:
    def __init__(self, unet: torch.nn.Module, scheduler):
        self.unet = unet
        self.scheduler = scheduler

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int):
        self.scheduler.set_timesteps(num_inference_steps)
        for t in self.scheduler.timesteps:
            noise = self.unet(latents, t)
            latents = self.scheduler.step(noise, t, latents)
        return latents
