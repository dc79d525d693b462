"""Scores are copied once a request, for whoever asked for them: nothing is picked there."""

import torch
from torch import nn


class Composer:
    def __init__(self, model: nn.Module, device: str = "cuda"):
        self.model = model.to(device).eval()

    @torch.inference_mode()
    def compose(self, notes: torch.Tensor, max_new_tokens: int = 512) -> tuple[torch.Tensor, list]:
        found = []
        for _ in range(max_new_tokens):
            logits = self.model(notes)[:, -1]
            notes = torch.multinomial(logits.softmax(-1), 1)
            found.append(notes)
        return torch.cat(found, 1), logits.float().cpu().tolist()
