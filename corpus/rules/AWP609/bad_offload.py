"""Weights offloaded although they fit."""

import torch
from diffusers import AutoPipelineForText2Image, DiffusionPipeline


def load(name: str) -> DiffusionPipeline:
    pipe = DiffusionPipeline.from_pretrained(name, torch_dtype=torch.float16)
    pipe.to("cuda")
    pipe.enable_model_cpu_offload()  # expect: AWP609
    return pipe


class Service:
    def __init__(self, name: str):
        self.pipe = AutoPipelineForText2Image.from_pretrained(name).to("cuda")
        self.pipe.enable_sequential_cpu_offload()  # expect: AWP609
