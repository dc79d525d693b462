"""One batch of two, two different models, a second pass that needs the first, guidance that may be off."""

import torch


@torch.inference_mode()
def one_batch(unet: torch.nn.Module, latents: torch.Tensor, both, scheduler, timesteps, guidance_scale):
    for t in timesteps:
        noise_uncond, noise_text = unet(torch.cat([latents] * 2), t, both).chunk(2)
        noise = noise_uncond + guidance_scale * (noise_text - noise_uncond)
        latents = scheduler.step(noise, t, latents)
    return latents


@torch.inference_mode()
def other_weights(unet: torch.nn.Module, weak_unet: torch.nn.Module, latents, cond, scheduler, timesteps, scale):
    for t in timesteps:
        weak = weak_unet(latents, t, cond)
        noise = unet(latents, t, cond)
        noise = weak + scale * (noise - weak)
        latents = scheduler.step(noise, t, latents)
    return latents


@torch.inference_mode()
def second_order(unet: torch.nn.Module, latents, cond, timesteps, scale, delta):
    for t in timesteps:
        first = unet(latents, t, cond)
        second = unet(latents + delta * first, t, cond)
        latents = latents + scale * (second - first)
    return latents


@torch.inference_mode()
def own_caches(transformer: torch.nn.Module, latents, cond, uncond, scheduler, timesteps, guidance_scale):
    for t in timesteps:
        with transformer.cache_context("cond"):
            noise = transformer(latents, t, cond)
        with transformer.cache_context("uncond"):
            empty = transformer(latents, t, uncond)
        noise = empty + guidance_scale * (noise - empty)
        latents = scheduler.step(noise, t, latents)
    return latents


@torch.inference_mode()
def may_be_off(transformer: torch.nn.Module, latents, cond, uncond, scheduler, timesteps, guidance_scale):
    for t in timesteps:
        noise = transformer(latents, t, cond)
        if guidance_scale > 1:
            empty = transformer(latents, t, uncond)  # expect[low]: AWP210
            mixed = empty + guidance_scale * (noise - empty)
            latents = scheduler.step(mixed, t, latents)
    return latents
