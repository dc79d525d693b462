"""``torch.compile`` of the same model finds its earlier code: the wrapper alone is made anew."""

import torch
from fastapi import FastAPI

app = FastAPI()
model = torch.nn.Linear(16, 16).to("cuda").eval()


@app.post("/embed")
def embed(values: list) -> list:
    fast = torch.compile(model)  # expect[low]: AWP404
    return fast(torch.tensor([values], device="cuda")).tolist()
