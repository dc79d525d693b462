"""Autocast entered at every step and every token; a weight matrix cast in every forward."""

import torch
import torch.nn.functional as F
from torch import nn


class Pipeline:
    def __init__(self, unet: nn.Module, scheduler):
        self.unet = unet
        self.scheduler = scheduler

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, timesteps) -> torch.Tensor:
        latents = latents.to("cuda")
        for t in timesteps:
            with torch.autocast("cuda", dtype=torch.bfloat16):  # expect: AWP704
                noise = self.unet(latents, t)
            latents = self.scheduler.step(noise, t, latents)
        return latents


@torch.inference_mode()
def generate(model: nn.Module, input_ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    input_ids = input_ids.to("cuda")
    cache = None
    for _ in range(max_new_tokens):
        with torch.cuda.amp.autocast():  # expect: AWP704
            logits, cache = model(input_ids, cache)
        input_ids = logits[:, -1:].argmax(-1)
    return input_ids


class Linear(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim, dim))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return F.linear(hidden_states, self.weight.to(torch.bfloat16))  # expect: AWP704
