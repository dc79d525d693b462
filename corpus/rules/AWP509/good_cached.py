"""Cached loops; loops over steps of fixed length; encoders."""

import torch
from torch import nn


@torch.no_grad()
def generate(model: nn.Module, ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    cache, step = None, ids
    for _ in range(max_new_tokens):
        out = model(step, past_key_values=cache)
        cache, step = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, step], dim=1)
    return ids


@torch.no_grad()
def infer(model: nn.Module, latents: torch.Tensor, timesteps: torch.Tensor) -> torch.Tensor:
    history = latents
    for t in timesteps:
        latents = latents - model(latents, t)
        history = torch.cat([history, latents], dim=0)
    return history


@torch.no_grad()
def predict(model: nn.Module, ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    for position in range(max_new_tokens):
        logits = model(ids[:, -1:], position)
        ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return ids
