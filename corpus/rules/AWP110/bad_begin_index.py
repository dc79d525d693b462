"""Denoising loops whose scheduler searches for the first step."""

import torch
from diffusers import DiffusionPipeline, FlowMatchEulerDiscreteScheduler, UniPCMultistepScheduler


class VideoPipeline(DiffusionPipeline):
    def __init__(self, transformer: torch.nn.Module, scheduler: FlowMatchEulerDiscreteScheduler):
        super().__init__()
        self.register_modules(transformer=transformer, scheduler=scheduler)

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int, device: str) -> torch.Tensor:
        self.scheduler.set_timesteps(num_inference_steps, device=device)
        timesteps = self.scheduler.timesteps
        for i, t in enumerate(timesteps):  # expect: AWP110
            noise = self.transformer(latents, t.expand(latents.shape[0]))
            latents = self.scheduler.step(noise, t, latents, return_dict=False)[0]
        return latents


def sample(unet: torch.nn.Module, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
    scheduler = UniPCMultistepScheduler.from_pretrained("sampler")
    scheduler.set_timesteps(num_inference_steps, device="cuda")
    for t in scheduler.timesteps:  # expect: AWP110
        latents = scheduler.step(unet(latents, t), t, latents).prev_sample
    return latents
