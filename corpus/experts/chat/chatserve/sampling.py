"""From logits to the next token: repetition penalty, temperature, top-k, top-p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from chatserve.config import SamplingParams


@dataclass
class SamplingBatch:
    """The options of all rows of a batch as (rows, 1) tensors, and the tokens each row has seen."""

    temperature: torch.Tensor
    top_k: torch.Tensor
    top_p: torch.Tensor
    penalty: torch.Tensor
    penalised: bool  # whether any row has a penalty
    seen: torch.Tensor
    generator: torch.Generator

    @classmethod
    def create(
        cls, params: Sequence[SamplingParams], prompt: torch.Tensor, vocab_size: int, seed: int
    ) -> SamplingBatch:
        device = prompt.device

        def column(values: list[float] | list[int]) -> torch.Tensor:
            return torch.tensor(values, device=device)[:, None]

        seen = torch.zeros(len(params), vocab_size, dtype=torch.bool, device=device)
        seen.scatter_(1, prompt, True)
        return cls(
            temperature=column([item.temperature for item in params]),
            top_k=column([item.top_k for item in params]),
            top_p=column([item.top_p for item in params]),
            penalty=column([item.repetition_penalty for item in params]),
            penalised=any(item.repetition_penalty != 1.0 for item in params),
            seen=seen,
            generator=torch.Generator(device).manual_seed(seed),
        )

    def record(self, tokens: torch.Tensor) -> None:
        self.seen.scatter_(1, tokens[:, None], True)


def penalise(logits: torch.Tensor, batch: SamplingBatch) -> torch.Tensor:
    """Tokens that a row has seen, made less likely."""
    if not batch.penalised:
        return logits
    penalised = torch.where(logits > 0, logits / batch.penalty, logits * batch.penalty).to(logits.dtype)
    return torch.where(batch.seen, penalised, logits)


def restrict(logits: torch.Tensor, batch: SamplingBatch) -> torch.Tensor:
    """Keep the ``top_k`` best tokens of each row, and of those the ones that make up ``top_p``."""
    ordered, order = logits.sort(dim=-1, descending=True)
    ranks = torch.arange(logits.shape[-1], device=logits.device)
    before = ordered.softmax(dim=-1).cumsum(dim=-1).roll(1, dims=-1)
    before[:, 0] = 0.0
    ordered[(ranks >= batch.top_k) | (before >= batch.top_p)] = float("-inf")
    return torch.empty_like(logits).scatter_(1, order, ordered)


def sample(logits: torch.Tensor, batch: SamplingBatch) -> tuple[torch.Tensor, torch.Tensor]:
    """Next token of each row and its log-probability, both (rows,)."""
    scores = restrict(logits.float() / batch.temperature, batch).log_softmax(dim=-1)
    tokens = torch.multinomial(scores.exp(), 1, generator=batch.generator)
    return tokens[:, 0], scores.gather(1, tokens)[:, 0]


def top_logprobs(logits: torch.Tensor, count: int) -> torch.Tensor:
    """The ``count`` likeliest tokens of each row and their log-probabilities (rows, 2, count), on the device."""
    values, tokens = torch.log_softmax(logits.float(), dim=-1).topk(count, dim=-1)
    return torch.stack((tokens.float(), values), dim=1)  # exact up to 2 ** 24 tokens
