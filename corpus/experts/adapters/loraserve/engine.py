"""Decodes a batch of requests, each with its own adapter and its own options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from captured import Captured
from loraserve.adapters import AdaptedLinear
from loraserve.model import BaseModel, KVCache

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
        self.caches: dict[int, list[KVCache]] = {}  # by the rows of a batch
        self.steps_of: dict[int, Captured] = {}
        self.store = None

    def prepare(self, rows: int) -> list[KVCache]:
        """Caches and the recorded step for so many rows; adapters are brought over with the first batch."""
        if self.store is None:
            for module in self.model.modules():
                if isinstance(module, AdaptedLinear):
                    module.stack()
                    self.store = module.store
        if rows not in self.caches:
            dtype = self.model.embed.weight.dtype
            caches = [KVCache(self.model.config, rows, self.device, dtype) for _ in self.model.layers]
            self.caches[rows] = caches

            def step(
                tokens: torch.Tensor, places: torch.Tensor, padding: torch.Tensor, numbers: torch.Tensor, end: int
            ) -> torch.Tensor:
                return self.model(tokens, places, padding, numbers, caches, end)

            self.steps_of[rows] = Captured(step)
        return self.caches[rows]

    def pad(self, batch: Sequence[Request]) -> tuple[torch.Tensor, torch.Tensor]:
        """Prompts, padded on the left, and how much padding each has; both on the device."""
        width = max(len(request.prompt) for request in batch)
        rows = [[0] * (width - len(request.prompt)) + request.prompt for request in batch]
        padding = [width - len(request.prompt) for request in batch]
        return torch.tensor(rows).to(self.device), torch.tensor(padding).to(self.device)

    def sample(
        self,
        logits: torch.Tensor,
        temperature: torch.Tensor,
        top_k: torch.Tensor,
        most: int,
        generators: Sequence[torch.Generator],
    ) -> torch.Tensor:
        """One token a request (rows,), with the request's own temperature, top k and random numbers.

        A draw is the largest of chances over exponential noise, which is what ``torch.multinomial`` does for one draw;
        only the noise is made row by row.
        """
        scores = logits.float() / temperature[:, None]
        if most:
            least = scores.topk(most).values.gather(1, (top_k - 1).clamp(min=0)[:, None])
            scores = torch.where((top_k[:, None] > 0) & (scores < least), float("-inf"), scores)
        noise = torch.empty_like(scores)
        for row, generator in enumerate(generators):
            noise[row].exponential_(1.0, generator=generator)
        return torch.softmax(scores, dim=-1).div_(noise).argmax(dim=-1)

    @torch.inference_mode()
    def run(self, batch: Sequence[Request]) -> None:
        """Decode until all requests of the batch are finished."""
        names = [request.adapter for request in batch]
        tokens, padding = self.pad(batch)
        caches = self.prepare(len(batch))
        assert self.store is not None
        numbers = torch.tensor(self.store.numbers(names)).to(self.device)
        temperature = torch.tensor([request.temperature for request in batch]).to(self.device)
        top_k = torch.tensor([request.top_k for request in batch]).to(self.device)
        most = max(request.top_k for request in batch)
        limit = self.model.config.max_length
        whole = self.device.type == "cuda"  # a graph has one form: it reads the caches to their ends
        generators = [torch.Generator(self.device).manual_seed(self.seed + request.number) for request in batch]
        end = tokens.shape[1]
        logits = self.model(tokens, self.model.columns[:end], padding, numbers, caches, end)
        while True:
            following = self.sample(logits, temperature, top_k, most, generators)
            chosen = following.tolist()  # the one read of a step
            for request, token in zip(batch, chosen):
                if not request.finished:
                    request.output.append(token)
            self.steps += 1
            if all(request.finished for request in batch):
                break
            place = self.model.columns[end : end + 1]
            end += 1
            logits = self.steps_of[len(batch)]((following[:, None], place, padding, numbers), limit if whole else end)
