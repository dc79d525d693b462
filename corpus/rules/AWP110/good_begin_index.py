"""Schedulers that were told their first index, somewhere in the file."""

import torch
from diffusers import DDIMScheduler, DiffusionPipeline, FlowMatchEulerDiscreteScheduler


class VideoPipeline(DiffusionPipeline):
    def __init__(self, transformer: torch.nn.Module, scheduler: FlowMatchEulerDiscreteScheduler):
        super().__init__()
        self.register_modules(transformer=transformer, scheduler=scheduler)

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int, device: str) -> torch.Tensor:
        self.scheduler.set_timesteps(num_inference_steps, device=device)
        self.scheduler.set_begin_index(0)
        for i, t in enumerate(self.scheduler.timesteps):
            noise = self.transformer(latents, t.expand(latents.shape[0]))
            latents = self.scheduler.step(noise, t, latents, return_dict=False)[0]
        return latents
