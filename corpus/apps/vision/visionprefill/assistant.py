"""Pictures and a question in, the chances of a few answers out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from visionprefill.config import MERGE, PATCH, Config
from visionprefill.text import LanguageModel
from visionprefill.vision import VisionTower

PAD, PICTURE, BYTES = 0, 1, 2
SYSTEM = "You look at pictures and answer with one letter."


@dataclass(frozen=True)
class Question:
    picture: torch.Tensor  # (3, height, width) in uint8 on the host; height and width in whole tokens
    text: str
    options: int


@dataclass(frozen=True)
class Verdict:
    option: str
    chance: float
    margin: float


def to_patches(picture: torch.Tensor) -> torch.Tensor:
    """Patches (patches, 3 * PATCH * PATCH) in the order in which they are merged, on the host."""
    channels, height, width = picture.shape
    down, across = height // PATCH // MERGE, width // PATCH // MERGE
    x = picture.view(channels, down, MERGE, PATCH, across, MERGE, PATCH)
    return x.permute(1, 4, 2, 5, 0, 3, 6).reshape(down * across * MERGE * MERGE, -1)


class Assistant(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.vision = VisionTower(config.vision, config.text.dim)
        self.language = LanguageModel(config.text)

    @property
    def device(self) -> torch.device:
        return self.language.embed.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.language.embed.weight.dtype

    def prompt(self, question: Question) -> list[int]:
        """Tokens of one question, a place holder for each token of its picture."""
        _, height, width = question.picture.shape
        count = height // (PATCH * MERGE) * (width // (PATCH * MERGE))
        before = [BYTES + byte for byte in SYSTEM.encode()]
        return before + [PICTURE] * count + [BYTES + byte for byte in question.text.encode()]

    def look(self, questions: Sequence[Question]) -> torch.Tensor:
        """Features (tokens, dim) of all pictures, one after the other."""
        pictures = [to_patches(question.picture) for question in questions]
        patches = torch.cat(pictures).to(self.device, self.dtype) / 127.5 - 1.0
        grid = torch.tensor(
            [[side // PATCH for side in question.picture.shape[1:]] for question in questions], device=self.device
        )
        return self.vision(patches, grid)

    def embed(self, tokens: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Embeddings with the features of the pictures where the place holders stand."""
        x = self.language.embed(tokens)
        places = tokens == PICTURE
        if places.sum() != features.shape[0]:
            raise ValueError(f"{features.shape[0]} features for {int(places.sum())} place holders")
        x[places] = features
        return x

    @torch.inference_mode()
    def answer(self, questions: Sequence[Question]) -> list[Verdict]:
        """The best option of each question, with its chance and how far it is ahead."""
        prompts = [self.prompt(question) for question in questions]
        width = max(map(len, prompts))
        tokens = torch.tensor([[PAD] * (width - len(prompt)) + prompt for prompt in prompts], device=self.device)
        padding = torch.tensor([width - len(prompt) for prompt in prompts], device=self.device)
        logits = self.language(self.embed(tokens, self.look(questions)), padding)
        last = logits[:, -1]
        verdicts = []
        for row, question in enumerate(questions):
            letters = torch.tensor([BYTES + ord("A") + number for number in range(question.options)])
            chances = last[row, letters.to(self.device)].softmax(dim=-1)
            best = chances.topk(2)
            option = chr(ord("A") + best.indices[0].item())
            verdicts.append(Verdict(option, best.values[0].item(), (best.values[0] - best.values[1]).item()))
        return verdicts
