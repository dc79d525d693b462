"""Documents in, summaries out: pieces are summarised in batches, and what they gave is summarised again."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from summarise.batches import END, PAD, START, Tokenizer, batched, collate, pieces
from summarise.model import Summariser
from summarise.rules import LeastLength, NoRepeatedNgrams, RepetitionPenalty


class Pipeline:
    def __init__(self, model: Summariser, device: torch.device, batch: int, limit: int) -> None:
        self.model = model
        self.device = device
        self.batch = batch
        self.limit = limit
        self.tokenizer = Tokenizer(model.config.vocab_size)
        self.rules = [RepetitionPenalty(1.3), NoRepeatedNgrams(3), LeastLength(6, END)]
        self.steps = 0

    @torch.no_grad()
    def generate(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """A summary of each row of tokens."""
        tokens, padding = collate(rows, self.model.config.max_input)
        tokens, padding = tokens.to(self.device), padding.to(self.device)
        memory = self.model.encode(tokens, padding)
        output = torch.full((len(rows), 1), START, device=self.device)
        unfinished = torch.ones(len(rows), dtype=torch.long, device=self.device)
        for _ in range(self.limit):
            scores = self.model.decode(output, memory, padding)[:, -1].float()
            for rule in self.rules:
                scores = rule(output, scores)
            following = scores.argmax(dim=-1) * unfinished + PAD * (1 - unfinished)
            output = torch.cat((output, following[:, None]), dim=1)
            unfinished = unfinished * (following != END).long()
            self.steps += 1
            if unfinished.max() == 0:
                break
        return [self.trim(row) for row in output[:, 1:].tolist()]

    def trim(self, row: list[int]) -> list[int]:
        """Without the end and what lies behind it."""
        return row[: row.index(END)] if END in row else row

    def summarise(self, documents: Sequence[str]) -> list[str]:
        """Summaries in the order of the documents."""
        size = self.model.config.max_input
        parts = [pieces(self.tokenizer.encode(document), size, size // 8) for document in documents]
        rows = [piece for document in parts for piece in document]
        short: list[list[int]] = []
        for batch in batched(rows, self.batch):
            short += self.generate(batch)
        joined = []
        for document in parts:
            joined.append([token for summary in short[: len(document)] for token in summary][:size])
            short = short[len(document) :]
        final: list[list[int]] = []
        for batch in batched(joined, self.batch):
            final += self.generate(batch)
        return [self.tokenizer.decode(summary) for summary in final]
