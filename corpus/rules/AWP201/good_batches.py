"""Loops over batches, loaders, layers and chunks."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import AutoModel, AutoTokenizer


class Embedder:
    def __init__(self, name: str):
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.model = AutoModel.from_pretrained(name).to("cuda").eval()

    @torch.inference_mode()
    def predict(self, texts: list, batch_size: int = 32) -> torch.Tensor:
        vectors = []
        for start in range(0, len(texts), batch_size):
            inputs = self.tokenizer(texts[start : start + batch_size], padding=True, return_tensors="pt").to("cuda")
            vectors.append(self.model(**inputs).last_hidden_state.mean(1))
        return torch.cat(vectors)

    @torch.inference_mode()
    def encode(self, loader: DataLoader) -> list:
        return [self.model(**batch.to("cuda")).last_hidden_state for batch in loader]


class Stack(nn.Module):
    def __init__(self, encoder: nn.Module, layers: nn.ModuleList):
        super().__init__()
        self.encoder = encoder
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        hidden_states = self.encoder(hidden_states)
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states
