"""An image server whose route runs a denoising loop."""

import torch
from diffusers import UNet2DModel
from fastapi import FastAPI

app = FastAPI()
unet = UNet2DModel.from_pretrained("unet").to("cuda").eval()


@app.post("/image")
def image(seed: int, num_inference_steps: int = 50) -> list:
    with torch.inference_mode():
        latents = torch.randn(1, 4, 64, 64, device="cuda")
        for i in range(num_inference_steps):  # expect: AWP401
            noise = unet(latents, i).sample
            latents = latents - noise * 0.02
    return latents.tolist()
