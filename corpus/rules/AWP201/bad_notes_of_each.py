"""What is noted of each item in an attribute is no input of the next one's pass."""

import torch
from transformers import AutoModel, AutoTokenizer


class Embedder:
    def __init__(self, name: str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.model = AutoModel.from_pretrained(name).to("cuda").eval()
        self.sizes: list[int] = []

    @torch.inference_mode()
    def embed(self, texts: list[str]) -> list[torch.Tensor]:
        vectors = []
        for text in texts:  # expect: AWP201
            inputs = self.tokenizer(text, return_tensors="pt").to("cuda")
            hidden = self.model(**inputs).last_hidden_state
            self.sizes.append(hidden.shape[1])
            vectors.append(hidden[:, 0])
        return vectors


class Chat:
    def __init__(self, name: str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.model = AutoModel.from_pretrained(name).to("cuda").eval()
        self.said: list[str] = []

    @torch.inference_mode()
    def answers(self, turns: list[str]) -> list[str]:
        for turn in turns:
            inputs = self.tokenizer(" ".join([*self.said, turn]), return_tensors="pt").to("cuda")
            reply = self.tokenizer.decode(self.model.generate(**inputs)[0])
            self.said.append(reply)
        return self.said
