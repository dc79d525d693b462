"""Guidance by two forwards."""

import torch


@torch.inference_mode()
def sample(unet: torch.nn.Module, latents: torch.Tensor, cond, uncond, scheduler, timesteps, guidance_scale):
    for t in timesteps:
        noise_uncond = unet(latents, t, encoder_hidden_states=uncond).sample
        noise_text = unet(latents, t, encoder_hidden_states=cond).sample  # expect: AWP210
        noise = noise_uncond + guidance_scale * (noise_text - noise_uncond)
        latents = scheduler.step(noise, t, latents)
    return latents


class Sampler(torch.nn.Module):
    def __init__(self, transformer: torch.nn.Module, scheduler):
        super().__init__()
        self.transformer = transformer
        self.scheduler = scheduler

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, text: torch.Tensor, empty: torch.Tensor, steps: int, cfg: float):
        for step in range(steps):
            t = self.scheduler.timesteps[step]
            cond = self.transformer(latents, t, text)[0]
            null = self.transformer(latents, t, empty)[0]  # expect: AWP210
            velocity = (1 + cfg) * cond - cfg * null - 0.0 * (cond - null)
            latents = self.scheduler.step(velocity, t, latents)
        return latents
