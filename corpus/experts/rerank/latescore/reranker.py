"""Scores passages against a question and sorts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from latescore.encoder import TokenEncoder
from latescore.text import PASSAGE, QUERY, Tokenizer


@dataclass(frozen=True)
class Ranked:
    place: int  # in the list that was given
    score: float


class Reranker:
    def __init__(self, encoder: TokenEncoder, device: torch.device, batch: int) -> None:
        self.encoder = encoder
        self.device = device
        self.batch = batch
        self.tokenizer = Tokenizer(encoder.config.vocab_size, encoder.config.max_length)
        self.marks = range(min(self.tokenizer.marks.values()), max(self.tokenizer.marks.values()) + 1)
        self.passages = 0
        for layer in encoder.layers:
            layer.fuse()

    def keep(self, tokens: torch.Tensor) -> torch.Tensor:
        """Which tokens (rows, length) take part: neither padding nor punctuation, whose ids lie side by side."""
        return (tokens != 0) & ((tokens < self.marks.start) | (tokens >= self.marks.stop))

    def encode_question(self, question: str) -> torch.Tensor:
        """Vectors (words, out) of a question."""
        tokens = self.tokenizer.batch([self.tokenizer.encode(question, QUERY)])
        return self.encoder(tokens.to(self.device))[0]

    def scores(self, question: torch.Tensor, passages: Sequence[str]) -> list[float]:
        """For each passage the sum over the question's words of the best match in it. Batches are of like lengths."""
        rows = [self.tokenizer.encode(text, PASSAGE) for text in passages]
        order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
        scores = []
        for start in range(0, len(order), self.batch):
            batch = self.tokenizer.batch([rows[place] for place in order[start : start + self.batch]])
            tokens = batch.pin_memory() if self.device.type == "cuda" else batch
            tokens = tokens.to(self.device, non_blocking=True)
            similarity = question @ self.encoder(tokens).transpose(1, 2)
            similarity = similarity.masked_fill(~self.keep(tokens)[:, None], float("-inf"))
            scores.append(similarity.max(dim=2).values.sum(dim=1))
        found = [0.0] * len(order)
        for place, score in zip(order, torch.cat(scores).tolist()):  # the one read of a request
            found[place] = score
        return found

    @torch.inference_mode()
    def rerank(self, question: str, passages: Sequence[str], count: int) -> list[Ranked]:
        """The ``count`` best passages, best first; equal scores keep their order."""
        wanted = self.encode_question(question)
        scores = self.scores(wanted, passages)
        self.passages += len(passages)
        order = sorted(range(len(passages)), key=lambda place: -scores[place])
        return [Ranked(place, scores[place]) for place in order[:count]]
