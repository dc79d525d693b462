"""Sampling with NumPy and Python from copied logits."""

import numpy as np
import torch


@torch.inference_mode()
def generate(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int, temperature: float):
    device = "cuda"
    input_ids = input_ids.to(device)
    for _ in range(max_new_tokens):
        logits = model(input_ids)[:, -1] / temperature
        scores = logits.float().cpu().numpy()  # expect: AWP111
        scores = np.exp(scores - scores.max())
        probs = scores / scores.sum()
        picked = np.random.choice(probs.shape[-1], p=probs[0])
        input_ids = torch.cat([input_ids, torch.full((1, 1), int(picked), device=device)], dim=1)
    return input_ids


@torch.inference_mode()
def predict(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int):
    input_ids = input_ids.cuda()
    for _ in range(max_new_tokens):
        probs = model(input_ids)[:, -1].softmax(dim=-1).to("cpu")  # expect: AWP111
        values, order = torch.sort(probs, descending=True)
        values[values.cumsum(-1) > 0.9] = 0.0
        picked = order.gather(-1, torch.multinomial(values, 1))
        input_ids = torch.cat([input_ids, picked.cuda()], dim=1)
    return input_ids
