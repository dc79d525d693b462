"""Whole lists, batches, set-up, dependent passes."""

from transformers import AutoTokenizer


class Service:
    def __init__(self, name: str, stop_words: list):
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.stop_ids = [self.tokenizer.encode(word) for word in stop_words]

    def predict(self, texts: list) -> list:
        return self.tokenizer(texts, padding=True, return_tensors="pt").input_ids

    def generate(self, prompts: list, size: int) -> list:
        rows = []
        for start in range(0, len(prompts), size):
            rows.append(self.tokenizer(prompts[start : start + size], padding=True))
        for batch in rows:
            self.tokenizer.batch_decode(batch.input_ids)
        return rows
