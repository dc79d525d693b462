"""Merged after loading."""

import torch
from peft import AutoPeftModelForCausalLM

model = AutoPeftModelForCausalLM.from_pretrained("adapter", torch_dtype=torch.bfloat16)
model = model.merge_and_unload().to("cuda").eval()


def complete(input_ids: torch.Tensor) -> torch.Tensor:
    return model.generate(input_ids.to("cuda"), max_new_tokens=64)
