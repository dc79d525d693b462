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
        self.marks = set(self.tokenizer.marks.values())
        self.passages = 0

    def keep(self, tokens: torch.Tensor) -> torch.Tensor:
        """Which tokens (rows, length) take part: neither padding nor punctuation."""
        rows = [[token != 0 and token not in self.marks for token in row] for row in tokens.tolist()]
        return torch.tensor(rows)

    def encode_question(self, question: str) -> torch.Tensor:
        """Vectors (words, out) of a question."""
        tokens = self.tokenizer.batch([self.tokenizer.encode(question, QUERY)])
        return self.encoder(tokens.to(self.device))[0].detach()

    def encode_passages(self, passages: Sequence[str]) -> list[torch.Tensor]:
        """Vectors (words, out) of each passage, kept on the host: there may be thousands."""
        vectors = []
        for start in range(0, len(passages), self.batch):
            texts = passages[start : start + self.batch]
            tokens = self.tokenizer.batch([self.tokenizer.encode(text, PASSAGE) for text in texts])
            output = self.encoder(tokens.to(self.device))
            mask = self.keep(tokens).to(self.device)
            for row in range(len(texts)):
                vectors.append(output[row][mask[row]].detach().cpu())
        return vectors

    def score(self, question: torch.Tensor, passage: torch.Tensor) -> float:
        """Sum over the question's words of the best match in the passage."""
        similarity = question @ passage.to(self.device).T
        return similarity.max(dim=1).values.sum().item()

    def rerank(self, question: str, passages: Sequence[str], count: int) -> list[Ranked]:
        """The ``count`` best passages, best first; equal scores keep their order."""
        wanted = self.encode_question(question)
        scores = [self.score(wanted, passage) for passage in self.encode_passages(passages)]
        self.passages += len(passages)
        order = sorted(range(len(passages)), key=lambda place: -scores[place])
        return [Ranked(place, scores[place]) for place in order[:count]]
