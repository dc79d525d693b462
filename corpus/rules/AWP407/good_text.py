"""The text itself grows and no cache exists: that is AWP509, not a growing cache."""

import torch
from torch import nn


@torch.inference_mode()
def generate(model: nn.Module, ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    for _ in range(max_new_tokens):
        logits = model(ids)
        ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return ids


def train(model: nn.Module, batches: list, optimizer: object) -> None:
    history = torch.zeros(1, 0, device="cuda")
    for step in range(100):
        loss = model(batches[step], history)
        loss.backward()
        history = torch.cat([history, loss.detach().view(1, 1)], dim=1)
