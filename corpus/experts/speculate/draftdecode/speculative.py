"""The algorithm: draft a few tokens, let the target judge them at once, keep what it accepts.

What comes out is distributed as if the target had drawn every token itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from captured import Captured
from draftdecode.model import Cache, Decoder

END = 0


@dataclass
class Statistics:
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    lengths: list[int] = field(default_factory=list)

    @property
    def acceptance(self) -> float:
        return self.accepted / max(self.drafted, 1)


class Reader:
    """A model and its cache. What is fed stands behind what is there; short pieces run as a recorded graph."""

    def __init__(self, model: Decoder, device: torch.device, dtype: torch.dtype, most: int) -> None:
        self.model = model
        self.cache = Cache(model.config, device, dtype)
        self.most = most
        self.whole = device.type == "cuda"  # a graph has one form: it reads the cache to its end
        self.step = Captured(self._step)

    def _step(self, tokens: torch.Tensor, places: torch.Tensor, end: int) -> torch.Tensor:
        return self.model(tokens, places, self.cache, end)

    def feed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits (1, length, vocab)."""
        start, end = self.cache.length, self.cache.length + tokens.shape[1]
        self.cache.length = end
        places = self.cache.columns[start:end]
        if tokens.shape[1] > self.most:
            return self._step(tokens, places, end)
        return self.step((tokens, places), self.model.config.max_length if self.whole else end)


class SpeculativeDecoder:
    def __init__(
        self, target: Decoder, draft: Decoder, device: torch.device, dtype: torch.dtype, lookahead: int, seed: int
    ) -> None:
        self.target = Reader(target, device, dtype, lookahead + 1)
        self.draft = Reader(draft, device, dtype, 2)
        self.longest = target.config.max_length
        self.device = device
        self.lookahead = lookahead
        self.generator = torch.Generator(device).manual_seed(seed)
        self.statistics = Statistics()

    def chances(self, logits: torch.Tensor, temperature: float) -> torch.Tensor:
        return torch.softmax(logits.float() / temperature, dim=-1)

    def draw(self, chances: torch.Tensor) -> torch.Tensor:
        return torch.multinomial(chances, 1, generator=self.generator)

    def propose(self, tokens: torch.Tensor, count: int, temperature: float) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """The sequence with ``count`` drafted tokens behind it, and the chances (1, vocab) each was drawn from."""
        chances = []
        drafted = [tokens]
        fresh = tokens[:, self.draft.cache.length :]
        for _ in range(count):
            chances.append(self.chances(self.draft.feed(fresh)[:, -1], temperature))
            fresh = self.draw(chances[-1])
            drafted.append(fresh)
        return torch.cat(drafted, dim=1), chances

    def judge(
        self, tokens: torch.Tensor, known: int, drafted: list[torch.Tensor], temperature: float
    ) -> tuple[int, torch.Tensor]:
        """How many drafted tokens stay, and the token (1, 1) that follows them."""
        count = len(drafted)
        logits = self.target.feed(tokens[:, self.target.cache.length :])
        wanted = self.chances(logits[0, -count - 1 :], temperature)
        offered = torch.cat(drafted)
        token = tokens[0, known : known + count, None]
        ratio = (wanted[:count].gather(1, token) / offered.gather(1, token))[:, 0]
        before = self.generator.get_state()
        kept = (self.numbers(count) <= ratio).cumprod(0).sum()
        place, broken = torch.stack((kept, torch.isnan(offered[-1]).any().long())).tolist()  # one read a round
        if broken:
            raise FloatingPointError("the draft model gave no numbers")
        if place == count:
            return count, self.draw(wanted[-1:])
        self.generator.set_state(before)  # as if nothing had been drawn behind the first that was refused
        self.numbers(place + 1)
        rest = (wanted[place] - offered[place]).clamp(min=0.0)
        return place, self.draw((rest / rest.sum())[None])

    def numbers(self, count: int) -> torch.Tensor:
        """Random numbers (count,), each a draw of its own."""
        return torch.cat([torch.rand(1, device=self.device, generator=self.generator) for _ in range(count)])

    @torch.inference_mode()
    def generate(
        self, prompt: list[int], limit: int, temperature: float, show: Callable[[list[int]], None]
    ) -> list[int]:
        """Up to ``limit`` tokens after the prompt; ``show`` is given those of each round."""
        self.target.cache.rewind(0)
        self.draft.cache.rewind(0)
        tokens = torch.tensor([prompt]).to(self.device)
        if len(prompt) > 1:
            self.target.feed(tokens[:, :-1])
        answer: list[int] = []
        while len(answer) < limit:
            known = tokens.shape[1]
            count = min(self.lookahead, self.longest - known - 1)
            if count < 1:
                break
            proposed, chances = self.propose(tokens, count, temperature)
            kept, following = self.judge(proposed, known, chances, temperature)
            tokens = torch.cat((proposed[:, : known + kept], following), dim=1)
            self.target.cache.rewind(known + kept)
            self.draft.cache.rewind(known + kept)
            fresh = tokens[0, known:].tolist()
            if END in fresh:
                fresh = fresh[: fresh.index(END)]
                limit = 0
            answer += fresh
            show(fresh)
            self.statistics.rounds += 1
            self.statistics.drafted += count
            self.statistics.accepted += kept
        self.statistics.lengths.append(len(answer))
        return answer
