"""Padded to a few tokens, which cost about what one costs."""

import torch
from transformers import AutoModel, AutoTokenizer


class Retrieval:
    def __init__(self, name: str, max_words: int = 35, longest: int = 512):
        self.model = AutoModel.from_pretrained(name).to("cuda").eval()
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.max_words = max_words
        self.longest = longest

    @torch.inference_mode()
    def embed(self, caption: str) -> torch.Tensor:
        inputs = self.tokenizer(  # expect[low]: AWP207
            [caption], padding="max_length", max_length=self.max_words, truncation=True, return_tensors="pt"
        )
        return self.model(**inputs.to("cuda")).last_hidden_state

    @torch.inference_mode()
    def embed_query(self, query: str) -> torch.Tensor:
        inputs = self.tokenizer(  # expect[low]: AWP207
            [query], padding="max_length", max_length=32, truncation=True, return_tensors="pt"
        )
        return self.model(**inputs.to("cuda")).last_hidden_state

    @torch.inference_mode()
    def embed_page(self, page: str) -> torch.Tensor:
        inputs = self.tokenizer(  # expect: AWP207
            [page], padding="max_length", max_length=self.longest, truncation=True, return_tensors="pt"
        )
        return self.model(**inputs.to("cuda")).last_hidden_state
