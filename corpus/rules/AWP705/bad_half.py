"""Half-precision weights, nothing said of quantisation. Only a run can say whether it matters."""

import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("lm", dtype=torch.bfloat16).to("cuda").eval()


def complete(input_ids: torch.Tensor) -> torch.Tensor:
    return model.generate(input_ids.to("cuda"), max_new_tokens=256)  # expect[low]: AWP705
