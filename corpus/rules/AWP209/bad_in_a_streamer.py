"""A streamer that is handed one token at a time and turns all that it has into text for each."""

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


class Streamer:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.ids = []
        self.sent = 0

    def feed(self, token: int) -> str:
        self.ids.append(token)
        text = self.tokenizer.decode(self.ids, skip_special_tokens=True)  # expect: AWP209
        piece, self.sent = text[self.sent :], len(text)
        return piece


@torch.inference_mode()
def generate_stream(model: AutoModelForCausalLM, tokenizer: AutoTokenizer, ids: torch.Tensor, max_new_tokens: int):
    streamer = Streamer(tokenizer)
    cache = None
    for _ in range(max_new_tokens):
        out = model(ids, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        ids = out.logits[:, -1:].argmax(-1)
        yield streamer.feed(int(ids))
