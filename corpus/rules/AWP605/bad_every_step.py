"""Flushing the allocator's cache, and collecting garbage, at every step."""

import gc

import torch
from torch.cuda import empty_cache


class Pipeline:
    def __init__(self, unet: torch.nn.Module):
        self.unet = unet

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        for step in range(num_inference_steps):
            latents = self.unet(latents, step)
            torch.cuda.empty_cache()  # expect: AWP605
            gc.collect()  # expect: AWP605
        return latents


@torch.inference_mode()
def generate(model: torch.nn.Module, ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    for _ in range(max_new_tokens):
        ids = torch.cat([ids, model(ids)[:, -1].argmax(-1, keepdim=True)], dim=1)
        empty_cache()  # expect: AWP605
    return ids
