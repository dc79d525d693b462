"""Traces and captures made for each request."""

import torch
from fastapi import FastAPI

app = FastAPI()
model = torch.nn.Linear(16, 16).to("cuda").eval()


@app.post("/embed")
def embed(values: list) -> list:
    x = torch.tensor([values], device="cuda")
    traced = torch.jit.trace(model, x)  # expect: AWP404
    return traced(x).tolist()


@app.post("/graph")
def graph(values: list) -> list:
    x = torch.tensor([values], device="cuda")
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):  # expect: AWP404
        y = model(x)
    recorded.replay()
    return y.tolist()


@app.post("/script")
def script(values: list) -> list:
    fast = torch.jit.script(model)  # expect: AWP404
    return fast(torch.tensor([values], device="cuda")).tolist()
