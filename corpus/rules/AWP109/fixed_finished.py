"""Stop checks that wait at every token."""

import torch
from torch import nn


@torch.no_grad()
def generate(model: nn.Module, input_ids: torch.Tensor, max_new_tokens: int, eos_token_id: int) -> torch.Tensor:
    input_ids = input_ids.cuda()
    unfinished = torch.ones(input_ids.shape[0], dtype=torch.long, device="cuda")
    for step in range(max_new_tokens):
        tokens = model(input_ids)[:, -1].argmax(-1)
        tokens = tokens * unfinished
        unfinished = unfinished * (tokens != eos_token_id).long()
        input_ids = torch.cat([input_ids, tokens[:, None]], dim=1)
        if step % 8 == 7 and unfinished.max() == 0:
            break
    return input_ids


@torch.no_grad()
def generate_until(model: nn.Module, ids: torch.Tensor, limit: int, eos: int) -> torch.Tensor:
    ids = ids.cuda()
    finished = torch.zeros(ids.shape[0], dtype=torch.bool, device="cuda")
    while not finished.all() and ids.shape[1] < limit:
        tokens = model(ids)[:, -1].argmax(-1)
        finished = finished | (tokens == eos)
        ids = torch.cat([ids, tokens[:, None]], dim=1)
        if (tokens == eos).any().item():
            continue
    return ids
