"""Captures of device work alone; reads after the replay; allocation inside, which comes from the graph's pool."""

import torch
from torch import nn


def pick(logits: torch.Tensor) -> torch.Tensor:
    return logits.argmax(-1)


def read(tokens: torch.Tensor) -> list:
    if torch.cuda.is_current_stream_capturing():
        return []
    return tokens.tolist()


class Runner:
    def __init__(self, model: nn.Module, causal: bool):
        self.model = model.to("cuda")
        self.x = torch.zeros(4, 16, device="cuda")
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            mask = torch.zeros(4, 4, device="cuda")
            if causal and self.x.shape[0] > 1:
                mask = mask.triu(1)
            self.y = self.model(self.x) + mask.sum()
            self.tokens = pick(self.y)

    def __call__(self, x: torch.Tensor) -> list:
        self.x.copy_(x.to("cuda"))
        self.graph.replay()
        return read(self.tokens)
