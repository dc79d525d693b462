"""Tables that an object keeps on the host, and models moved in requests."""

import torch
from fastapi import FastAPI
from torch import nn
from transformers import AutoModel

app = FastAPI()
encoder = AutoModel.from_pretrained("encoder")


class Rope(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.freqs = torch.arange(0, dim, 2) / dim
        self.scales = torch.linspace(0, 1, steps=dim)

    def forward(self, positions: torch.Tensor) -> torch.Tensor:
        if self.freqs.device != positions.device:
            self.freqs = self.freqs.to(positions.device)
        freqs = self.freqs.to(positions.device)
        return torch.outer(positions, freqs * self.scales[::2].to(device=positions.device))


@app.post("/embed")
def embed(ids: list[int]) -> list:
    model = encoder
    encoder.to("cuda")
    return model(torch.tensor([ids], device="cuda")).last_hidden_state.tolist()
