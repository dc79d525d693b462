"""One conversation: prompts in, streamed answers out."""

from __future__ import annotations

from collections.abc import Callable

import torch

from moechat.model import MoeModel

END = 0


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
    tokens = torch.tensor([vocabulary.encode(prompt)], device=device)
    logits, past = model(tokens)
    produced: list[int] = []
    shown = ""
    while len(produced) < limit:
        probabilities = torch.softmax(logits[:, -1].float() / temperature, dim=-1)
        following = torch.multinomial(probabilities, 1, generator=generator)
        word = following.item()
        if word == END:
            break
        produced.append(word)
        text = vocabulary.decode(produced)
        show(text[len(shown) :])
        shown = text
        tokens = torch.cat((tokens, following), dim=1)
        logits, past = model(tokens[:, -1:], past)
    return shown
