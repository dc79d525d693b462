"""Host tensors, set-up code, training loops."""

import torch
from torch import nn


class Table(nn.Module):
    def __init__(self, num_layers: int):
        super().__init__()
        rows = torch.zeros(0, 4)
        for index in range(num_layers):
            rows = torch.cat([rows, torch.full((1, 4), float(index))])
        self.register_buffer("rows", rows)


@torch.inference_mode()
def generate(model: nn.Module, prompt: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    history = torch.zeros(1, 0)
    state = prompt.to("cuda")
    for _ in range(max_new_tokens):
        state = model(state)
        history = torch.cat([history, state[:, -1].mean().cpu().view(1, 1)], dim=1)
    return history


def train(model: nn.Module, loader, optimizer, epochs: int):
    losses = torch.zeros(0, device="cuda")
    for _ in range(epochs):
        for batch in loader:
            loss = model(batch.cuda()).mean()
            loss.backward()
            optimizer.step()
            losses = torch.cat([losses, loss.detach()[None]])
    return losses
