"""The token that is read anyway decides; checks every few tokens; Python counters."""

import torch
from torch import nn


@torch.no_grad()
def generate(model: nn.Module, input_ids: torch.Tensor, max_new_tokens: int, eos: int):
    input_ids = input_ids.cuda()
    for _ in range(max_new_tokens):
        next_token = model(input_ids)[:, -1].argmax(-1)
        input_ids = torch.cat([input_ids, next_token[:, None]], dim=1)
        token = next_token.item()
        yield token
        if token == eos:
            break


@torch.no_grad()
def generate_batch(model: nn.Module, input_ids: torch.Tensor, max_new_tokens: int, eos: int) -> torch.Tensor:
    input_ids = input_ids.cuda()
    finished = torch.zeros(input_ids.shape[0], dtype=torch.bool, device="cuda")
    for step in range(max_new_tokens):
        tokens = model(input_ids)[:, -1].argmax(-1)
        finished = finished | (tokens == eos)
        input_ids = torch.cat([input_ids, tokens[:, None]], dim=1)
        if step % 16 == 15 and finished.all():
            break
        if input_ids.shape[1] >= 2048:
            break
    return input_ids
