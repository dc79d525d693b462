"""Gradients are off: by decorator, context, caller, callee or parameter."""

import torch
from fastapi import FastAPI
from torch import nn
from transformers import AutoModelForCausalLM, AutoModel, AutoTokenizer

app = FastAPI()
tokenizer = AutoTokenizer.from_pretrained("lm")
lm = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()
encoder = AutoModel.from_pretrained("encoder").to("cuda").eval()


@app.post("/complete")
def complete(prompt: str) -> str:
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    out = lm.generate(**inputs, max_new_tokens=32)
    return tokenizer.decode(out[0])


@app.post("/embed")
@torch.inference_mode()
def embed(texts: list[str]) -> list:
    inputs = tokenizer(texts, return_tensors="pt").to("cuda")
    return pooled(inputs).tolist()


def pooled(inputs) -> torch.Tensor:
    return encoder(**inputs).last_hidden_state.mean(1)


@app.post("/score")
def score(texts: list[str]) -> list:
    with torch.no_grad():
        return encoder(**tokenizer(texts, return_tensors="pt").to("cuda")).last_hidden_state[:, 0].tolist()


class Tower(nn.Module):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.encoder = net

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        return self.encoder(pixel_values)


class Quiet(nn.Module):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


def predict(x: torch.Tensor, quiet: Quiet) -> torch.Tensor:
    return quiet.forward(x)
