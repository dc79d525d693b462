"""Schedulers without a search, optimisers' schedules, and steps outside of denoising loops."""

import torch
from diffusers import DDIMScheduler, DiffusionPipeline, FlowMatchEulerDiscreteScheduler


class ImagePipeline(DiffusionPipeline):
    def __init__(self, unet: torch.nn.Module, scheduler: DDIMScheduler):
        super().__init__()
        self.register_modules(unet=unet, scheduler=scheduler)

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int, device: str) -> torch.Tensor:
        self.scheduler.set_timesteps(num_inference_steps, device=device)
        for t in self.scheduler.timesteps:
            latents = self.scheduler.step(self.unet(latents, t), t, latents).prev_sample
        return latents


class OneStep(DiffusionPipeline):
    def __init__(self, unet: torch.nn.Module, decoder_scheduler: FlowMatchEulerDiscreteScheduler):
        super().__init__()
        self.register_modules(unet=unet, decoder_scheduler=decoder_scheduler)

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return self.decoder_scheduler.step(self.unet(latents, t), t, latents).prev_sample
