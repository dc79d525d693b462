"""Decodes a batch of requests, each with its own adapter and its own options."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from loraserve.model import BaseModel, KVCache

logger = logging.getLogger(__name__)
END = 0


@dataclass
class Request:
    number: int
    adapter: str
    prompt: list[int]
    limit: int
    temperature: float
    top_k: int
    output: list[int] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        return len(self.output) >= self.limit or self.output[-1:] == [END]


class Engine:
    def __init__(self, model: BaseModel, device: torch.device, seed: int) -> None:
        self.model = model
        self.device = device
        self.seed = seed
        self.steps = 0

    def pad(self, batch: Sequence[Request]) -> tuple[torch.Tensor, torch.Tensor]:
        """Prompts, padded on the left, and how much padding each has; both on the device."""
        width = max(len(request.prompt) for request in batch)
        rows = [[0] * (width - len(request.prompt)) + request.prompt for request in batch]
        padding = [width - len(request.prompt) for request in batch]
        return torch.tensor(rows, device=self.device), torch.tensor(padding, device=self.device)

    def sample(
        self, logits: torch.Tensor, batch: Sequence[Request], generators: Sequence[torch.Generator]
    ) -> list[int]:
        """One token a request, with the request's own temperature, top k and random numbers."""
        chosen = []
        for row, request in enumerate(batch):
            scores = logits[row].float() / request.temperature
            if request.top_k:
                least = scores.topk(request.top_k).values[-1]
                scores = scores.masked_fill(scores < least, float("-inf"))
            token = torch.multinomial(torch.softmax(scores, dim=-1), 1, generator=generators[row])
            chosen.append(token.item())
        return chosen

    @torch.inference_mode()
    def run(self, batch: Sequence[Request]) -> None:
        """Decode until all requests of the batch are finished."""
        names = [request.adapter for request in batch]
        tokens, padding = self.pad(batch)
        caches = [KVCache() for _ in self.model.layers]
        generators = [torch.Generator(self.device).manual_seed(self.seed + request.number) for request in batch]
        logits = self.model(tokens, padding, caches, names)
        while True:
            chosen = self.sample(logits, batch, generators)
            for request, token in zip(batch, chosen):
                if not request.finished:
                    request.output.append(token)
            logger.debug("step %d: best logit %s", self.steps, logits.max())
            self.steps += 1
            if all(request.finished for request in batch):
                break
            tokens = torch.tensor(chosen, device=self.device)[:, None]
            logits = self.model(tokens, padding, caches, names)
