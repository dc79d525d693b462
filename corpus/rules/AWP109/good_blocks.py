"""A block of tokens is denoised by steps of its own: the end is asked for once a block."""

import torch
from torch import nn


@torch.inference_mode()
def generate(model: nn.Module, ids: torch.Tensor, max_new_tokens: int, block: int, num_steps: int, eos: int):
    for _ in range(0, max_new_tokens, block):
        canvas = torch.zeros(ids.shape[0], block, dtype=torch.long, device="cuda")
        for step in range(num_steps):
            canvas = model(torch.cat([ids, canvas], dim=1), step)[:, -block:].argmax(-1)
        ids = torch.cat([ids, canvas], dim=1)
        finished = (canvas == eos).any(dim=1)
        if finished.all():
            break
    return ids


@torch.inference_mode()
def generate_until_settled(model: nn.Module, ids: torch.Tensor, max_new_tokens: int, block: int, most: int, eos: int):
    for _ in range(0, max_new_tokens, block):
        canvas = torch.zeros(ids.shape[0], block, dtype=torch.long, device="cuda")
        for number in reversed(range(1, most + 1)):
            settled = model(torch.cat([ids, canvas], dim=1), number)[:, -block:].argmax(-1)
            done = settled == canvas
            canvas = settled
            if torch.all(done):  # expect: AWP109
                break
        ids = torch.cat([ids, canvas], dim=1)
        finished = (canvas == eos).any(dim=1)
        if torch.all(finished):  # expect[low]: AWP109
            break
    return ids
