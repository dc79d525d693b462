"""Each worker has its share."""

import torch
import uvicorn

torch.set_num_threads(4)

if __name__ == "__main__":
    uvicorn.run("server:app", workers=8)
