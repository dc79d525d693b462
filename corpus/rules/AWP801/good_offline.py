"""Coroutines that serve nobody, start-up hooks, a script."""

import asyncio
import time

import torch
from fastapi import FastAPI
from transformers import AutoModel

app = FastAPI()


@app.on_event("startup")
async def load() -> None:
    app.state.model = AutoModel.from_pretrained("encoder").to("cuda").eval()
    app.state.model(torch.ones(1, 8, dtype=torch.long, device="cuda"))


async def download_all(urls: list[str]) -> None:
    for _ in urls:
        time.sleep(0.1)


@app.get("/health")
async def health() -> dict:
    return {"loaded": hasattr(app.state, "model")}


if __name__ == "__main__":
    asyncio.run(download_all(["a"]))
