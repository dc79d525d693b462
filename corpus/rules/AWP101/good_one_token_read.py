"""The one read of the picked token that a streaming decode loop cannot avoid."""

import torch


@torch.inference_mode()
def stream(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int, eos: int):
    input_ids = input_ids.to("cuda")
    cache = None
    step_ids = input_ids
    for _ in range(max_new_tokens):
        out = model(step_ids, past_key_values=cache)
        cache = out.past_key_values
        next_token = out.logits[:, -1].argmax(-1)
        token = next_token.item()
        yield token
        if token == eos:
            break
        step_ids = next_token[:, None]
