"""The weights of all layers asked for at every token, beside keywords that come in a dictionary."""

import torch
from transformers import AutoModelForCausalLM


@torch.inference_mode()
def generate(model: AutoModelForCausalLM, ids: torch.Tensor, max_new_tokens: int, **options) -> torch.Tensor:
    cache = None
    found = []
    for _ in range(max_new_tokens):
        out = model(ids, past_key_values=cache, output_attentions=True, **options)  # expect: AWP505
        cache, ids = out.past_key_values, out.logits[:, -1:].argmax(-1)
        found.append(ids)
    return torch.cat(found, dim=1)
