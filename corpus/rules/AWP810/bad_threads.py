"""Eight workers of 64 threads."""

import os

import uvicorn

os.environ["OMP_NUM_THREADS"] = "64"

if __name__ == "__main__":
    uvicorn.run("server:app", workers=8)  # expect: AWP810
