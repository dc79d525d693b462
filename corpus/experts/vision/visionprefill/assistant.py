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
        grid = [(question.picture.shape[1] // PATCH, question.picture.shape[2] // PATCH) for question in questions]
        return self.vision(patches, grid)

    def embed(self, rows: list[list[int]], features: torch.Tensor) -> torch.Tensor:
        """Embeddings with the features of the pictures where the place holders stand."""
        x = self.language.embed(torch.tensor(rows).to(self.device))
        width = len(rows[0])
        places = [row * width + at for row, ids in enumerate(rows) for at, token in enumerate(ids) if token == PICTURE]
        if len(places) != features.shape[0]:
            raise ValueError(f"{features.shape[0]} features for {len(places)} place holders")
        x.flatten(0, 1).index_copy_(0, torch.tensor(places).to(self.device), features)
        return x

    @torch.inference_mode()
    def answer(self, questions: Sequence[Question]) -> list[Verdict]:
        """The best option of each question, with its chance and how far it is ahead."""
        prompts = [self.prompt(question) for question in questions]
        width = max(map(len, prompts))
        rows = [[PAD] * (width - len(prompt)) + prompt for prompt in prompts]
        padding = torch.tensor([width - len(prompt) for prompt in prompts]).to(self.device)
        last = self.language(self.embed(rows, self.look(questions)), padding)
        most = max(question.options for question in questions)
        options = torch.tensor([question.options for question in questions]).to(self.device)
        letters = last[:, BYTES + ord("A") : BYTES + ord("A") + most]
        letters = letters.masked_fill(torch.arange(most, device=self.device) >= options[:, None], float("-inf"))
        best = letters.softmax(dim=-1).topk(2)
        margin = best.values[:, :1] - best.values[:, 1:]
        answers = torch.cat((best.indices[:, :1].float(), best.values[:, :1], margin), dim=1).tolist()  # one read
        return [Verdict(chr(ord("A") + int(number)), chance, ahead) for number, chance, ahead in answers]
