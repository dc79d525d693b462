"""The engine: prefill and decode for one batch of requests at a time."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from captured import Captured
from chatserve.cache import KVCache
from chatserve.config import SamplingParams
from chatserve.model import ChatModel
from chatserve.sampling import SamplingBatch, penalise, sample, top_logprobs
from chatserve.tokenizer import StreamDecoder, Tokenizer

logger = logging.getLogger(__name__)
BUCKET = 128  # a graph reads the cache up to a multiple of this


@dataclass
class Request:
    """One prompt on its way through the engine; ``events`` is what the client is sent."""

    id: int
    ids: list[int]
    params: SamplingParams
    decoder: StreamDecoder
    eos_id: int
    events: queue.SimpleQueue[dict[str, object] | None] = field(default_factory=queue.SimpleQueue)
    text: str = ""
    count: int = 0
    done: bool = False
    output: list[int] = field(default_factory=list)

    def push(self, token: int, alternatives: list[tuple[int, float]] | None) -> None:
        """Take the next token: stream its text, and see whether the answer is complete."""
        if self.done:
            return
        self.count += 1
        if token == self.eos_id:
            self.finish("stop")
            return
        piece = self.decoder.push(token)
        self.text += piece
        event: dict[str, object] = {"text": piece}
        if alternatives:
            event["logprobs"] = alternatives[: self.params.logprobs]
        self.events.put(event)
        if any(stop in self.text for stop in self.params.stop):
            self.finish("stop")
        elif self.count == self.params.max_tokens:
            self.finish("length")

    def finish(self, reason: str) -> None:
        self.done = True
        rest = self.decoder.finish()
        self.text += rest
        self.events.put({"text": rest, "finish_reason": reason, "tokens": self.count})


@dataclass
class Stats:
    """What the engine did since it was started."""

    batches: int = 0
    steps: int = 0
    tokens: int = 0
    logprob: float = 0.0
    seconds: float = 0.0


class Engine:
    def __init__(
        self,
        model: ChatModel,
        tokenizer: Tokenizer,
        max_batch: int,
        device: torch.device,
        dtype: torch.dtype,
        seed: int,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.device = device
        self.max_batch = max_batch
        self.seed = seed
        self.cache = KVCache(model.config, max_batch, device, dtype)
        self.pad = torch.tensor(tokenizer.pad_id, device=device)
        self.places = torch.arange(model.config.max_length, device=device)
        self.step = Captured(self._step)
        self.stats = Stats()

    def warm_up(self, steps: int = 3) -> float:
        """Run a few steps, so that no request pays for loading kernels; returns milliseconds a step."""
        tokens = torch.full((self.max_batch, 1), self.tokenizer.bos_id, device=self.device)
        padding = torch.zeros(self.max_batch, dtype=torch.long, device=self.device)
        with torch.inference_mode():
            self.step((tokens, self.places[:1], padding), self._end(1))
            self._wait()
            start = time.perf_counter()
            for position in range(steps):
                self.step((tokens, self.places[position : position + 1], padding), self._end(position + 1))
            self._wait()
        return (time.perf_counter() - start) * 1e3 / steps

    def _step(self, tokens: torch.Tensor, positions: torch.Tensor, padding: torch.Tensor, end: int) -> torch.Tensor:
        return self.model(tokens, positions, padding, end, self.cache)

    def _end(self, length: int) -> int:
        """How far a step reads the cache: what is there, on a device rounded up, so that few graphs are recorded."""
        if self.device.type != "cuda":
            return length
        return min(-(-length // BUCKET) * BUCKET, self.model.config.max_length)

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _pad_left(self, prompts: Sequence[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Prompts as one (rows, width) tensor, and how much padding each row has at its left."""
        lengths = torch.tensor([len(ids) for ids in prompts])
        width = int(lengths.max())
        tokens = torch.full((len(prompts), width), self.tokenizer.pad_id)
        for row, ids in enumerate(prompts):
            tokens[row, width - len(ids) :] = torch.tensor(ids)
        return tokens.to(self.device), (width - lengths).to(self.device)

    @torch.inference_mode()
    def generate(self, requests: Sequence[Request]) -> None:
        """Answer all requests; each one's events appear while the batch is decoded."""
        if len(requests) > self.max_batch:
            raise ValueError(f"{len(requests)} requests, the cache has {self.max_batch} rows")
        started = time.perf_counter()
        params = [request.params for request in requests]
        prompt, padding = self._pad_left([request.ids for request in requests])
        width = prompt.shape[1]
        budget = min(max(item.max_tokens for item in params), self.model.config.max_length - width)
        limits = [item.max_tokens for item in params]
        sampling = SamplingBatch.create(params, prompt, self.model.config.vocab_size, self.seed + self.stats.batches)
        finished = [False] * len(requests)
        ended = torch.zeros(len(requests), dtype=torch.bool, device=self.device)
        output: list[list[int]] = [[] for _ in requests]
        logprob = torch.zeros((), dtype=torch.float64, device=self.device)
        wanted = max(item.logprobs for item in params)

        logits = self.model(prompt, self.places[:width], padding, width, self.cache)
        for step in range(budget):
            logits = penalise(logits, sampling)
            best = top_logprobs(logits, wanted) if wanted else None
            tokens, logprobs = sample(logits, sampling)
            tokens = torch.where(ended, self.pad, tokens)
            sampling.record(tokens)
            ended = ended | (tokens == self.tokenizer.eos_id)
            logprob += logprobs.mean()
            if logger.isEnabledFor(logging.DEBUG):
                logger.debug("step %d: best logit %.3f", step, logits.max().item())
            if best is None:
                chosen, alternatives = tokens.tolist(), None
            else:  # one read for both
                rows = torch.cat((tokens[:, None].float(), best.flatten(1)), dim=1).tolist()
                chosen = [int(row[0]) for row in rows]
                alternatives = [list(zip(map(int, row[1 : wanted + 1]), row[wanted + 1 :])) for row in rows]
            for row, (request, token) in enumerate(zip(requests, chosen)):
                output[row].append(token)
                request.push(token, alternatives[row] if alternatives else None)
                if not finished[row] and (token == self.tokenizer.eos_id or limits[row] <= step + 1):
                    finished[row] = True
            if all(finished):
                break
            over = [row for row in range(len(requests)) if limits[row] == step + 1]
            if over:
                ended[over] = True
            place = width + step
            logits = self.step((tokens[:, None], self.places[place : place + 1], padding), self._end(place + 1))

        for row, request in enumerate(requests):
            if not request.done:
                request.finish("length")
            request.output = output[row][: request.count]
            request.events.put(None)
            self.stats.tokens += request.count
        self.stats.logprob += logprob.item()
        self.stats.steps += step + 1
        self.stats.batches += 1
        self.stats.seconds += time.perf_counter() - started
