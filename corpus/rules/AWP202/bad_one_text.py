"""A tokenizer and a processor called once an item."""

import torch
from transformers import AutoProcessor, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("lm")


class Service:
    def __init__(self, name: str):
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.processor = AutoProcessor.from_pretrained(name)

    def predict(self, texts: list, images: list) -> list:
        encoded = []
        for text in texts:  # expect[low]: AWP202
            encoded.append(self.tokenizer(text, truncation=True).input_ids)
        pixels = [self.processor(images=image, return_tensors="pt").pixel_values for image in images]  # expect[low]: AWP202
        return [encoded, torch.cat(pixels)]

    def generate(self, prompts: list) -> list:
        rows = []
        for i, prompt in enumerate(prompts):  # expect[low]: AWP202
            ids = self.tokenizer.encode(prompt)
            rows.append((i, ids))
        return rows
