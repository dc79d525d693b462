"""Quantised already."""

import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)
model = AutoModelForCausalLM.from_pretrained("lm", quantization_config=config).eval()


def complete(input_ids: torch.Tensor) -> torch.Tensor:
    return model.generate(input_ids.to("cuda"), max_new_tokens=256)
