"""Offload where memory may be short, elsewhere, or not at all."""

import torch
from diffusers import DiffusionPipeline
from transformers import AutoModelForCausalLM
from vllm import LLM


def load(name: str) -> DiffusionPipeline:
    pipe = DiffusionPipeline.from_pretrained(name, torch_dtype=torch.float16)
    pipe.enable_model_cpu_offload()  # expect[low]: AWP609
    return pipe


def load_whole(name: str) -> DiffusionPipeline:
    return DiffusionPipeline.from_pretrained(name, torch_dtype=torch.float16).to("cuda")


def load_two(name: str, other: str) -> tuple[DiffusionPipeline, DiffusionPipeline]:
    small = DiffusionPipeline.from_pretrained(name).to("cuda")
    large = DiffusionPipeline.from_pretrained(other)
    large.enable_sequential_cpu_offload()  # expect[low]: AWP609
    return small, large


def load_split(name: str) -> AutoModelForCausalLM:
    places = {"model.embed_tokens": 0, "model.layers": 0, "lm_head": 1}
    return AutoModelForCausalLM.from_pretrained(name, device_map=places)


def load_spilled(name: str) -> AutoModelForCausalLM:
    return AutoModelForCausalLM.from_pretrained(name, device_map={"model": 0, "lm_head": "cpu"})  # expect[low]: AWP609


def load_engine(name: str) -> LLM:
    return LLM(name, cpu_offload_gb=16)  # expect[low]: AWP609
