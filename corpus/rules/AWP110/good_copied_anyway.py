"""The loop copies its step to the host and back in every pass: one search in front of it is nothing."""

import torch
from diffusers import DiffusionPipeline, FlowMatchEulerDiscreteScheduler


class ImagePipeline(DiffusionPipeline):
    def __init__(self, transformer: torch.nn.Module, scheduler: FlowMatchEulerDiscreteScheduler):
        super().__init__()
        self.register_modules(transformer=transformer, scheduler=scheduler)

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int, device: str) -> torch.Tensor:
        self.scheduler.set_timesteps(num_inference_steps, device=device)
        for t in self.scheduler.timesteps:
            timestep = torch.tensor([t / 1000]).to(latents.device)
            latents = self.scheduler.step(self.transformer(latents, timestep), t, latents).prev_sample
        return latents
