"""Made once: at start-up, kept by shape, behind a test, or cached."""

import functools

import torch
from fastapi import FastAPI

app = FastAPI()
model = torch.nn.Linear(16, 16).to("cuda").eval()
traced = torch.jit.trace(model, torch.zeros(1, 16, device="cuda"))
kept: dict = {}


@functools.lru_cache
def scripted(name: str) -> torch.nn.Module:
    return torch.jit.script(model)


def capture(x: torch.Tensor):
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        y = model(x)
    return recorded, y


class Runner:
    def __init__(self):
        self.fast = None

    def run(self, x: torch.Tensor) -> torch.Tensor:
        if self.fast is None:
            self.fast = torch.jit.script(model)
        return self.fast(x)


runner = Runner()


@app.post("/embed")
def embed(values: list) -> list:
    x = torch.tensor([values], device="cuda")
    if x.shape not in kept:
        kept[x.shape] = capture(x)
    recorded, y = kept[x.shape]
    recorded.replay()
    return (runner.run(x) + traced(x) + scripted("a")(x) + y).tolist()
