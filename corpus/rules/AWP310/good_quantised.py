"""Quantised base weights: merging would round the adapter away."""

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

base = AutoModelForCausalLM.from_pretrained("base", quantization_config=BitsAndBytesConfig(load_in_4bit=True))
model = PeftModel.from_pretrained(base, "adapter")  # expect[low]: AWP310


def complete(input_ids: torch.Tensor) -> torch.Tensor:
    return model.generate(input_ids.to("cuda"), max_new_tokens=64)
