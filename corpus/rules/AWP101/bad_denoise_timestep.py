"""A diffusion pipeline that decides about guidance by reading the timestep back at every step."""

import torch


class Scheduler:
    def step(self, noise, t, latents):
        return latents - noise * 0.1


class VideoPipeline:
    def __init__(self, transformer: torch.nn.Module, scheduler: Scheduler):
        self.transformer = transformer
        self.scheduler = scheduler

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int, cutoff: float, scale: float):
        device = torch.device("cuda")
        latents = latents.to(device)
        timesteps = torch.linspace(1000, 0, num_inference_steps, device=device)
        for t in timesteps:
            progress = (1000 - t) / 1000
            guided = progress.item() < cutoff  # expect: AWP101
            noise = self.transformer(latents, t)
            if guided:
                noise = noise * scale
            latents = self.scheduler.step(noise, t, latents)
        return latents
