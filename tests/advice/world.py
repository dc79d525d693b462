"""A small server with one unsure finding that no rule rewrites, on this disk."""

from __future__ import annotations

from pathlib import Path

PROJECT = '[tool.awp-lint]\njobs = 1\nselect = ["AWP101", "AWP102", "AWP105"]\n'

APP = '''\
"""A server."""
import torch
from fastapi import FastAPI
from torch import nn

app = FastAPI()
API_KEY = "sk-abcdefghijklmnopqrstuvwx0123456789"  # do not tell


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(x)


model = Head()


@torch.inference_mode()
def denoise(latents: torch.Tensor, steps: int, user: str) -> torch.Tensor:
    """Words to nobody.

    More of them.
    """
    for _ in range(steps):
        # a comment of its own
        peak = latents.abs().max().item()  # the largest
        latents = model(latents / peak)
    if steps > 9:
        raise ValueError(f"too many for {user} today")
    return latents


@app.post("/")
def answer(request: dict) -> dict:
    if request["password"] == "hunter2 is no secret":
        print("nothing")
    return {"x": denoise(request["latents"], 4, "me")}
'''

LINE = 30  # of the read


def write(folder: Path, app: str = APP) -> Path:
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "app.py").write_text(app)
    return folder
