"""A queue and a worker that forms batches."""

import asyncio

import torch
from fastapi import FastAPI
from transformers import AutoModel, AutoTokenizer

app = FastAPI()
tokenizer = AutoTokenizer.from_pretrained("encoder")
model = AutoModel.from_pretrained("encoder").to("cuda").eval()
waiting: asyncio.Queue = asyncio.Queue()


@app.post("/embed")
async def embed(text: str) -> list:
    future = asyncio.get_running_loop().create_future()
    await waiting.put((text, future))
    return await future


@torch.inference_mode()
def run(texts: list[str]) -> list:
    inputs = tokenizer(texts, padding=True, return_tensors="pt").to("cuda")
    return model(**inputs).last_hidden_state[:, 0].tolist()
