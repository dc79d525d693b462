"""The whole output turned into text at every token."""

import torch
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("lm")


@torch.inference_mode()
def generate(model: torch.nn.Module, token: torch.Tensor, max_new_tokens: int):
    output_ids, cache, text = [], None, ""
    for _ in range(max_new_tokens):
        out = model(token, past_key_values=cache)
        cache, token = out.past_key_values, out.logits[:, -1:].argmax(-1)
        output_ids.append(int(token))
        new = tokenizer.decode(output_ids, skip_special_tokens=True)  # expect: AWP209
        yield new[len(text) :]
        text = new


class Engine:
    def __init__(self, name: str, model: torch.nn.Module):
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.model = model

    @torch.inference_mode()
    def generate(self, ids: torch.Tensor, max_new_tokens: int, stop: list[str]) -> torch.Tensor:
        start, cache, step = ids.shape[1], None, ids
        for _ in range(max_new_tokens):
            out = self.model(step, past_key_values=cache)
            cache, step = out.past_key_values, out.logits[:, -1:].argmax(-1)
            ids = torch.cat([ids, step], dim=1)
            text = self.tokenizer.batch_decode(ids[:, start:])  # expect: AWP209
            if any(word in text[0] for word in stop):
                break
        return ids


class Vocabulary:
    def __init__(self, words: list[str]) -> None:
        self.words = words

    def decode(self, ids: list[int]) -> str:
        return " ".join(self.words[number] for number in ids)


@torch.inference_mode()
def generate_words(model: torch.nn.Module, vocabulary: Vocabulary, token: torch.Tensor, max_new_tokens: int):
    produced: list[int] = []
    state = None
    for _ in range(max_new_tokens):
        logits, state = model(token, state)
        token = logits[:, -1:].argmax(-1)
        produced.append(int(token))
        yield vocabulary.decode(produced)  # expect: AWP209
