"""Set-up, once a request, error paths, debug output and timing: no hot path."""

import logging
import time

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def __init__(self, layers: nn.ModuleList, scale: torch.Tensor):
        super().__init__()
        self.layers = layers
        self.scale = scale.to("cuda").max().item()
        self.debug = False

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states)
            if hidden_states.shape[-1] != 64:
                raise ValueError(f"bad width, largest value {hidden_states.max().item()}")
            if self.debug:
                logger.debug("mean %s", hidden_states.mean().item())
        return hidden_states


@torch.inference_mode()
def predict(model: Model, x: torch.Tensor) -> list:
    scores = model(x.to("cuda")).softmax(-1)
    return scores.tolist()


def bench(model: Model, x: torch.Tensor, steps: int) -> float:
    start = time.perf_counter()
    for _ in range(steps):
        model(x).sum().item()
    return time.perf_counter() - start


def train(model: Model, loader, optimizer):
    for batch in loader:
        loss = model(batch.cuda()).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())
