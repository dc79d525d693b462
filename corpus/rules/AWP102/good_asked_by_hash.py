"""Asked for by its hash, or among texts: nothing is compared on the device. And what may be a list, as callers have it."""

from typing import Union

import torch
from torch import nn


class Chunks(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def generate(self, chunks: list[torch.Tensor]) -> list:
        shared = {"cache", "keys"}
        outputs: list[torch.Tensor | dict[str, torch.Tensor]] = [self.model(chunk) for chunk in chunks]
        found = []
        for output in outputs:
            for key in output:
                if key in shared:
                    continue
                found.append(output[key])
        return found


def one_hot(labels: torch.Tensor, known: Union[list, torch.Tensor, tuple]) -> torch.Tensor:
    kind = torch.uint8 if max(known) < 255 else torch.int32  # expect[low]: AWP102, AWP103
    return torch.zeros(len(known), *labels.shape, dtype=kind, device=labels.device)


def between(levels: torch.Tensor | list[float], values: torch.Tensor) -> torch.Tensor:
    if not isinstance(levels, torch.Tensor):
        levels = torch.tensor(levels)
    return values[1:] if levels.min() > 0.0 else values  # expect[low]: AWP102


def predict(model: nn.Module, images: list[torch.Tensor], known: torch.Tensor) -> list:
    found = []
    for image in images:
        for part in model(image.to("cuda")):
            found.append(between(part.mean(-1), one_hot(part.argmax(0), known)))
    return found
