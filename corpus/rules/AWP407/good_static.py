"""Caches and masks in their full size, windows of constant length, outputs that grow and go nowhere."""

import torch
from torch import nn
from transformers.cache_utils import StaticCache


@torch.inference_mode()
def generate(model: nn.Module, input_ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    cache = StaticCache(config=model.config, max_cache_len=1024)
    mask = torch.zeros(1, 1024, dtype=torch.long, device="cuda")
    positions = torch.arange(input_ids.shape[1], device="cuda")
    step = input_ids
    for _ in range(max_new_tokens):
        mask[:, positions] = 1
        out = model(step, attention_mask=mask, past_key_values=cache, cache_position=positions)
        step = out.logits[:, -1].argmax(-1, keepdim=True)
        positions = positions[-1:] + 1
        input_ids = torch.cat([input_ids, step], dim=1)
    return input_ids


@torch.inference_mode()
def stream(model: nn.Module, window: torch.Tensor, steps: int) -> torch.Tensor:
    for _ in range(steps):
        new = model(window, window.shape)
        window = torch.cat([window[:, 1:], new[:, None]], dim=1)
    return window
