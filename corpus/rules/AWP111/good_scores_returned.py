"""Scores that the user wants, once at the end; a host model."""

import numpy as np
import torch


@torch.inference_mode()
def predict(model: torch.nn.Module, x: torch.Tensor):
    probs = model(x.to("cuda")).softmax(-1)
    scores = probs.cpu().numpy()
    return np.argsort(scores)


@torch.inference_mode()
def generate(weights: np.ndarray, steps: int):
    state = np.zeros(8)
    for _ in range(steps):
        logits = weights @ state
        state[int(logits.argmax())] += 1
    return state
