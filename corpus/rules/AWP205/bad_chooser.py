"""Each request has a sampler of its own, and every step calls them one after the other with a row of the scores."""

import torch
from torch import nn


class Chooser:
    def __init__(self, temperature: float):
        self.temperature = temperature

    def __call__(self, scores: torch.Tensor) -> torch.Tensor:
        return torch.multinomial(torch.softmax(scores / self.temperature, dim=-1), 1)


class Served:
    def __init__(self, model: nn.Module):
        self.model = model.cuda().eval()

    @torch.inference_mode()
    def generate_token(self, input_ids: torch.Tensor, choosers: list[Chooser]) -> torch.Tensor:
        out = self.model(input_ids)
        picked = input_ids.new_empty(len(choosers))
        for row, chooser in enumerate(choosers):  # expect: AWP205
            logits = out[row].view(1, -1)
            picked[row] = chooser(logits).view(())
        return picked
