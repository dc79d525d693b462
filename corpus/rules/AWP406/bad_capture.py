"""Captures over code that asks the host, directly and in a helper."""

import torch
from torch import nn


def stop(logits: torch.Tensor) -> torch.Tensor:
    best = logits.argmax(-1)
    rows = torch.tensor([0, 1, 2], device="cuda")  # expect: AWP406
    return best[rows]


class Runner:
    def __init__(self, model: nn.Module):
        self.model = model.to("cuda")
        self.x = torch.zeros(4, 16, device="cuda")
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            scale = torch.ones(4, 1).to("cuda")  # expect: AWP406
            y = self.model(self.x * scale)
            z = torch.zeros(4, device="cuda")
            if z.sum() > 0:  # expect: AWP406
                y = -y
            self.count = z.max().item()  # expect: AWP406
            torch.cuda.synchronize()  # expect: AWP406
            self.tokens = stop(y)
