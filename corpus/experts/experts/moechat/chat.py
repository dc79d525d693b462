"""One conversation: prompts in, streamed answers out."""

from __future__ import annotations

from collections.abc import Callable

import torch

from captured import Captured
from moechat.model import Cache, MoeModel

END = 0


class Session:
    """A model with its cache, and the step that is recorded once for both; kept from one conversation to the next."""

    def __init__(self, model: MoeModel, length: int, device: torch.device) -> None:
        self.model = model
        self.length = length
        self.cache = Cache(model.config, length, device, model.embed.weight.dtype)
        self.places = torch.arange(length, device=device)
        self.whole = device.type == "cuda"  # a graph has one form: it reads the cache to its end
        self.step = Captured(self._step)

    def _step(self, tokens: torch.Tensor, positions: torch.Tensor, end: int) -> torch.Tensor:
        return self.model(tokens, positions, self.cache, end)

    def following(self, tokens: torch.Tensor, start: int) -> torch.Tensor:
        """Logits (1, vocab) of what follows tokens (1, length) at ``start``."""
        end = start + tokens.shape[1]
        positions = self.places[start:end]
        if tokens.shape[1] > 1:
            return self._step(tokens, positions, end)
        return self.step((tokens, positions), self.length if self.whole else end)


_sessions: dict[MoeModel, Session] = {}


def session_of(model: MoeModel, length: int, device: torch.device) -> Session:
    if model not in _sessions or _sessions[model].length < length:
        _sessions[model] = Session(model, -(-length // 64) * 64, device)
    return _sessions[model]


class Vocabulary:
    """Made-up words, one a token."""

    def __init__(self, size: int) -> None:
        parts = ["ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ra", "se", "tu"]
        self.words = ["<end>", *(parts[i % 12] + parts[i // 12 % 12] + parts[i // 144 % 12] * (i // 1728 + 1)
                                 for i in range(size - 1))]  # fmt: skip
        self.ids = {word: number for number, word in enumerate(self.words)}

    def encode(self, text: str) -> list[int]:
        return [self.ids.get(word, 1 + sum(map(ord, word)) % (len(self.words) - 1)) for word in text.split()]

    def decode(self, ids: list[int]) -> str:
        return " ".join(self.words[number] for number in ids)


@torch.inference_mode()
def answer(
    model: MoeModel,
    vocabulary: Vocabulary,
    prompt: str,
    device: torch.device,
    limit: int,
    temperature: float,
    generator: torch.Generator,
    show: Callable[[str], None],
) -> str:
    """Generate up to ``limit`` words; ``show`` is given each new piece of text."""
    ids = vocabulary.encode(prompt)
    session = session_of(model, len(ids) + limit, device)
    logits = session.following(torch.tensor([ids]).to(device), 0)
    produced = 0
    shown: list[str] = []
    while produced < limit:
        probabilities = torch.softmax(logits.float() / temperature, dim=-1)
        following = torch.multinomial(probabilities, 1, generator=generator)
        word = following.item()
        if word == END:
            break
        piece = vocabulary.decode([word])
        shown.append(f" {piece}" if shown else piece)
        show(shown[-1])
        logits = session.following(following, len(ids) + produced)
        produced += 1
    return "".join(shown)
