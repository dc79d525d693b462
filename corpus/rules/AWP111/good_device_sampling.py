"""Sampling on the device; only ids, or the few best values, are read."""

import torch


@torch.inference_mode()
def generate(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int, eos: int):
    input_ids = input_ids.to("cuda")
    for _ in range(max_new_tokens):
        logits = model(input_ids)[:, -1]
        probs, ids = torch.topk(logits.softmax(-1), 40)
        picked = ids.gather(-1, torch.multinomial(probs, 1))
        input_ids = torch.cat([input_ids, picked], dim=1)
        if picked[0, 0].item() == eos:
            break
    return input_ids


@torch.inference_mode()
def top_logprobs(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int):
    input_ids = input_ids.to("cuda")
    best = []
    for _ in range(max_new_tokens):
        logits = model(input_ids)[:, -1]
        values = logits.log_softmax(-1).topk(5).values.cpu()
        best.append(values)
        input_ids = torch.cat([input_ids, logits.argmax(-1, keepdim=True)], dim=1)
    return input_ids, best
