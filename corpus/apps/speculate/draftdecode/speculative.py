"""The algorithm: draft a few tokens, let the target judge them at once, keep what it accepts.

What comes out is distributed as if the target had drawn every token itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

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


class SpeculativeDecoder:
    def __init__(
        self, target: Decoder, draft: Decoder, device: torch.device, dtype: torch.dtype, lookahead: int, seed: int
    ) -> None:
        self.target = target
        self.draft = draft
        self.device = device
        self.lookahead = lookahead
        self.cache = Cache(target.config, device, dtype)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.statistics = Statistics()

    def chances(self, logits: torch.Tensor, temperature: float) -> torch.Tensor:
        return torch.softmax(logits.float() / temperature, dim=-1)

    def draw(self, chances: torch.Tensor) -> torch.Tensor:
        return torch.multinomial(chances, 1, generator=self.generator)

    def propose(self, tokens: torch.Tensor, count: int, temperature: float) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """The sequence with ``count`` drafted tokens behind it, and the chances (1, vocab) each was drawn from."""
        chances = []
        for _ in range(count):
            logits = self.draft(tokens)
            chances.append(self.chances(logits[:, -1], temperature))
            tokens = torch.cat((tokens, self.draw(chances[-1])), dim=1)
        return tokens, chances

    def judge(
        self, tokens: torch.Tensor, known: int, drafted: list[torch.Tensor], temperature: float
    ) -> tuple[int, torch.Tensor]:
        """How many drafted tokens stay, and the token (1, 1) that follows them."""
        logits = self.target(tokens[:, self.cache.length :], self.cache)
        wanted = self.chances(logits[0, -len(drafted) - 1 :], temperature)
        for place, draft in enumerate(drafted):
            token = tokens[0, known + place]
            ratio = wanted[place, token] / draft[0, token]
            if torch.rand(1, device=self.device, generator=self.generator) > ratio:
                rest = (wanted[place] - draft[0]).clamp(min=0.0)
                return place, self.draw((rest / rest.sum())[None])
        return len(drafted), self.draw(wanted[-1:])

    @torch.inference_mode()
    def generate(
        self, prompt: list[int], limit: int, temperature: float, show: Callable[[list[int]], None]
    ) -> list[int]:
        """Up to ``limit`` tokens after the prompt; ``show`` is given those of each round."""
        self.cache.rewind(0)
        tokens = torch.tensor([prompt], device=self.device)
        if len(prompt) > 1:
            self.target(tokens[:, :-1], self.cache)
        answer: list[int] = []
        while len(answer) < limit:
            known = tokens.shape[1]
            count = min(self.lookahead, self.target.config.max_length - known - 1)
            if count < 1:
                break
            proposed, chances = self.propose(tokens, count, temperature)
            kept, following = self.judge(proposed, known, chances, temperature)
            tokens = torch.cat((proposed[:, : known + kept], following), dim=1)
            self.cache.rewind(known + kept)
            fresh = tokens[0, known:].tolist()
            if END in fresh:
                fresh = fresh[: fresh.index(END)]
                limit = 0
            answer += fresh
            show(fresh)
            self.statistics.rounds += 1
            self.statistics.drafted += count
            self.statistics.accepted += kept
            if torch.isnan(chances[-1]).any():
                raise FloatingPointError("the draft model gave no numbers")
        self.statistics.lengths.append(len(answer))
        return answer
