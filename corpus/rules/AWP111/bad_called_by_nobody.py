"""A library's composer that picks the next note on the host; whoever uses the library calls it."""

import numpy as np
import torch
from torch import nn


def next_note(logits: torch.Tensor, share: float, temperature: float) -> int:
    probs = torch.softmax(logits / temperature, dim=-1).cpu().numpy()  # expect: AWP111
    order = np.argsort(probs)[::-1]
    kept = order[np.cumsum(probs[order]) < share]
    kept = kept if len(kept) else order[:1]
    return int(np.random.choice(kept, p=probs[kept] / probs[kept].sum()))


class Composer:
    def __init__(self, model: nn.Module, device: str = "cuda"):
        self.model = model.to(device).eval()
        self.device = device

    @torch.inference_mode()
    def compose(self, notes: torch.Tensor, max_new_tokens: int = 512) -> list[int]:
        found: list[int] = []
        state = None
        for _ in range(max_new_tokens):
            logits, state = self.model(notes, state)
            found.append(next_note(logits[0, -1], 0.9, 1.0))
            notes = notes.new_full((1, 1), found[-1])
        return found
