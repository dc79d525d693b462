"""One style adapter on a pipeline, never fused."""

import torch
from diffusers import DiffusionPipeline

pipe = DiffusionPipeline.from_pretrained("base", torch_dtype=torch.float16).to("cuda")
pipe.load_lora_weights("style", weight_name="style.safetensors")
pipe.fuse_lora()


def paint(prompt: str):
    return pipe(prompt, num_inference_steps=30).images[0]
