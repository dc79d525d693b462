"""Documents in, summaries out: pieces are summarised in batches, and what they gave is summarised again."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from captured import Captured
from summarise.batches import END, PAD, START, Tokenizer, batched, collate, pieces
from summarise.model import Summariser
from summarise.rules import forbid_end, forbid_repeated, penalise


class Pipeline:
    def __init__(self, model: Summariser, device: torch.device, batch: int, limit: int) -> None:
        self.model = model
        self.device = device
        self.batch = batch
        self.limit = limit
        self.tokenizer = Tokenizer(model.config.vocab_size)
        self.steps = 0
        self.step = Captured(self._step)
        config, dtype = model.config, model.embed.weight.dtype
        shape = (config.layers, 2, batch, config.heads)
        head = config.dim // config.heads
        # all that a step reads and writes lies in buffers that are made once
        self.past = torch.zeros(*shape, limit + 1, head, device=device, dtype=dtype)
        self.memory = torch.zeros(*shape, config.max_input, head, device=device, dtype=dtype)
        self.hidden = torch.zeros(batch, 1, 1, config.max_input, device=device, dtype=dtype)
        self.output = torch.zeros(batch, limit + 1, dtype=torch.long, device=device)
        self.seen = torch.zeros(batch, config.vocab_size, dtype=torch.bool, device=device)
        self.unfinished = torch.zeros(batch, dtype=torch.long, device=device)
        self.places = torch.arange(limit + 1, device=device)
        self.bias: torch.Tensor | None = None
        self.ready = False

    def _step(self, place: torch.Tensor, end: int, width: int) -> torch.Tensor:
        """One token a row at ``place`` (1,); keys and values are read up to ``end`` and ``width``. Who goes on."""
        assert self.bias is not None
        scores = self.model.decode(
            self.output.index_select(1, place),
            place,
            self.bias.index_select(2, place)[..., :end],
            self.past,
            self.memory[:, :, :, :, :width],
            self.hidden[..., :width],
        ).float()
        scores = penalise(scores, self.seen, 1.3)
        scores = forbid_repeated(scores, self.output, place)
        scores = forbid_end(scores, place, 6, END)
        following = scores.argmax(dim=-1) * self.unfinished + PAD * (1 - self.unfinished)
        self.output.index_copy_(1, place + 1, following[:, None])
        self.seen.scatter_(1, following[:, None], True)
        self.unfinished.mul_(following != END)
        return self.unfinished

    def _begin(self, rows: Sequence[Sequence[int]]) -> int:
        """Encode, and fill the buffers for a new batch; gives the width of its inputs."""
        width = max(map(len, rows))
        tokens, padding = (part.to(self.device) for part in collate(rows, width))
        memory = self.model.encode(tokens, padding)
        count = len(rows)
        for number, layer in enumerate(self.model.decoder):
            for part, filled in enumerate(layer.cross.keys(memory)):
                self.memory[number, part, :count, :, :width] = filled
        self.hidden.fill_(torch.finfo(self.hidden.dtype).min)
        self.hidden[:count, ..., :width] = self.model.hide(padding)
        self.hidden[count:, ..., 0] = 0  # rows of nobody see something
        self.output.fill_(PAD)
        self.output[:, 0] = START
        self.seen.zero_()
        self.seen[:, START] = True
        self.unfinished.zero_()
        self.unfinished[:count] = 1
        return width

    @torch.inference_mode()
    def generate(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """A summary of each row of tokens."""
        if self.bias is None:
            length = self.limit + 1
            least = torch.finfo(self.past.dtype).min
            future = torch.full((length, length), least, dtype=self.past.dtype, device=self.device).triu(1)
            self.bias = self.model.decoder_bias(length, length) + future
        whole = self.device.type == "cuda"  # a graph has one form: it reads the buffers to their ends
        if whole and not self.ready:
            self._begin(rows)
            self.step((self.places[:1],), self.limit + 1, self.model.config.max_input)
            self.ready = True
        width = self._begin(rows)
        for number in range(self.limit):
            end, read = (self.limit + 1, self.model.config.max_input) if whole else (number + 1, width)
            running = self.step((self.places[number : number + 1],), end, read)
            self.steps += 1
            if number % 8 == 7 and not running.any():  # what is finished only gets padding
                break
        return [self.trim(row) for row in self.output[: len(rows), 1:].tolist()]

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
