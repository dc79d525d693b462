"""The service: embed, index, search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from embedserve.batching import batches, pad, tokenize
from embedserve.encoder import Encoder


@dataclass(frozen=True)
class Hit:
    text: str
    score: float


class EmbeddingService:
    def __init__(self, encoder: Encoder, device: torch.device, budget: int) -> None:
        self.encoder = encoder
        self.device = device
        self.budget = budget
        self.texts: list[str] = []
        self.vectors = torch.empty(0, encoder.config.dim, device=device, dtype=encoder.embed.weight.dtype)

    @torch.inference_mode()
    def embed(self, texts: Sequence[str]) -> torch.Tensor:
        """Unit vectors (texts, dim) on the device, in the order of the texts."""
        config = self.encoder.config
        rows = [tokenize(text, config.vocab_size, config.max_length) for text in texts]
        result = torch.empty(len(texts), config.dim, device=self.device, dtype=self.vectors.dtype)
        pin = self.device.type == "cuda"
        for group in batches([len(row) for row in rows], self.budget):
            tokens = pad([rows[index] for index in group], pin).to(self.device, non_blocking=True)
            places = pad([group], pin)[0].to(self.device, non_blocking=True)
            result[places] = self.encoder(tokens)
        return result

    def add(self, texts: Sequence[str]) -> None:
        """Put texts into the index."""
        self.texts += texts
        self.vectors = torch.cat((self.vectors, self.embed(texts)))

    @torch.inference_mode()
    def search(self, questions: Sequence[str], count: int) -> list[list[Hit]]:
        """The best ``count`` texts of each question; read from the device once for all of them."""
        scores = self.embed(questions) @ self.vectors.T
        best = scores.float().topk(min(count, len(self.texts)), dim=-1)
        values, indices = best.values.cpu(), best.indices.cpu()
        answers = []
        for row in range(len(questions)):
            hits = []
            for score, index in zip(values[row].tolist(), indices[row].tolist()):
                if score > -1.0:
                    hits.append(Hit(self.texts[index], score))
            answers.append(hits)
        return answers
