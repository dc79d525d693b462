"""Reload, and several copies of the model."""

import torch
import uvicorn
from fastapi import FastAPI

app = FastAPI()
model = torch.nn.Linear(8, 8).to("cuda").eval()


def serve() -> None:
    uvicorn.run("server:app", host="0.0.0.0", workers=4)  # expect: AWP808


if __name__ == "__main__":
    uvicorn.run("server:app", host="0.0.0.0", reload=True)  # expect: AWP808
