"""Streamers that turn what is new into text: a window that moves, or what was not complete before."""

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


class Window:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.ids = []
        self.prefix = 0
        self.read = 0

    def feed(self, token: int) -> str:
        self.ids.append(token)
        before = self.tokenizer.decode(self.ids[self.prefix : self.read])
        text = self.tokenizer.decode(self.ids[self.prefix :])
        if text.endswith("\ufffd"):
            return ""
        self.prefix, self.read = self.read, len(self.ids)
        return text[len(before) :]


class Words:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.ids = []

    def feed(self, token: int) -> str:
        self.ids.append(token)
        text = self.tokenizer.decode(self.ids)
        if not text.endswith(" "):
            return ""
        self.ids = []
        return text


@torch.inference_mode()
def generate_stream(model: AutoModelForCausalLM, tokenizer: AutoTokenizer, ids: torch.Tensor, max_new_tokens: int):
    window, words = Window(tokenizer), Words(tokenizer)
    cache = None
    for _ in range(max_new_tokens):
        out = model(ids, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        ids = out.logits[:, -1:].argmax(-1)
        yield window.feed(int(ids)), words.feed(int(ids))
