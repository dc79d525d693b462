"""One process, values from settings, a runner that is no server."""

import os
import subprocess

import torch
import uvicorn
from fastapi import FastAPI

app = FastAPI()
model = torch.nn.Linear(8, 8).to("cuda").eval()

if __name__ == "__main__":
    subprocess.run(["nvidia-smi"], check=True)
    uvicorn.run("server:app", host="0.0.0.0", workers=1, reload=bool(os.environ.get("RELOAD")))
