"""Adapters are named and switched by request."""

import torch
from diffusers import DiffusionPipeline

pipe = DiffusionPipeline.from_pretrained("base", torch_dtype=torch.float16).to("cuda")
pipe.load_lora_weights("style-a", adapter_name="a")
pipe.load_lora_weights("style-b", adapter_name="b")


def paint(prompt: str, style: str):
    pipe.set_adapters([style])
    return pipe(prompt, num_inference_steps=30).images[0]
