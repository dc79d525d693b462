"""A decoder cast to float32 and back in every request."""

import torch
from fastapi import FastAPI
from transformers import AutoModel

app = FastAPI()
decoder = AutoModel.from_pretrained("decoder").half().to("cuda")


@app.post("/decode")
def decode(latents: list[float]) -> list:
    decoder.float()  # expect: AWP606
    image = decoder(torch.tensor([latents], device="cuda")).last_hidden_state
    decoder.half()  # expect: AWP606
    return image.tolist()
