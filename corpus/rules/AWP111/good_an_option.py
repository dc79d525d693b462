"""A way to pick that nobody asks for: the parameter is None unless somebody passes it."""

import numpy as np
import torch
from torch import nn


@torch.inference_mode()
def compose(model: nn.Module, notes: torch.Tensor, top_p: float | None = None, max_new_tokens: int = 512) -> list:
    found = []
    model = model.to("cuda").eval()
    for _ in range(max_new_tokens):
        logits = model(notes.to("cuda"))[0, -1]
        if top_p is not None:
            logits = logits.detach().cpu().numpy()  # expect[low]: AWP111
            order = np.argsort(logits)[::-1]
            logits[order[np.cumsum(logits[order]) > top_p]] = -np.inf
            logits = torch.from_numpy(logits).to("cuda")
        notes = torch.multinomial(logits.softmax(-1), 1)
        found.append(notes)
    return found
