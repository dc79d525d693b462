"""New tokens, windows, once at the end, now and then."""

import torch
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("lm")


def sample(model: torch.nn.Module, token: torch.Tensor, cache):
    out = model(token, past_key_values=cache)
    return out.past_key_values, out.logits[:, -1:].argmax(-1)


@torch.inference_mode()
def one_token(model: torch.nn.Module, token: torch.Tensor, max_new_tokens: int):
    ids, cache = [], None
    for _ in range(max_new_tokens):
        cache, token = sample(model, token, cache)
        ids.append(int(token))
        yield tokenizer.decode(ids[-1])


@torch.inference_mode()
def window(model: torch.nn.Module, token: torch.Tensor, max_new_tokens: int):
    ids, cache, done = [], None, 0
    for _ in range(max_new_tokens):
        cache, token = sample(model, token, cache)
        ids.append(int(token))
        text = tokenizer.decode(ids[done:])
        if not text.endswith("\ufffd"):
            done = len(ids)
            yield text


@torch.inference_mode()
def last_few(model: torch.nn.Module, token: torch.Tensor, max_new_tokens: int, stop: str) -> str:
    ids, cache = [], None
    for step in range(max_new_tokens):
        cache, token = sample(model, token, cache)
        ids.append(int(token))
        if stop in tokenizer.decode(ids[-8:]):
            return tokenizer.decode(ids)
    return tokenizer.decode(ids)


@torch.inference_mode()
def pieces(model: torch.nn.Module, token: torch.Tensor, max_new_tokens: int):
    held, cache = [], None
    for _ in range(max_new_tokens):
        cache, token = sample(model, token, cache)
        held.append(int(token))
        text = tokenizer.decode(held)
        if text.endswith(" "):
            yield text
            held = []


def each_answer(batches: list[list[int]]) -> list[str]:
    texts, ids = [], []
    for batch in batches:
        ids.append(batch)
        texts.append(tokenizer.decode(batch))
    return texts
