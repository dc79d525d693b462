"""A server whose handlers each run the model for themselves."""

import torch
from fastapi import FastAPI
from transformers import AutoModel, AutoTokenizer

app = FastAPI()
tokenizer = AutoTokenizer.from_pretrained("encoder")
model = AutoModel.from_pretrained("encoder").to("cuda").eval()


@app.get("/health")
def health() -> str:
    return "ok"


@app.post("/embed")
@torch.inference_mode()
def embed(text: str) -> list:
    inputs = tokenizer(text, return_tensors="pt").to("cuda")
    return model(**inputs).last_hidden_state[0, 0].tolist()  # expect: AWP803


@app.post("/norm")
@torch.inference_mode()
def norm(text: str) -> float:
    inputs = tokenizer(text, return_tensors="pt").to("cuda")
    return model(**inputs).last_hidden_state.norm().item()
