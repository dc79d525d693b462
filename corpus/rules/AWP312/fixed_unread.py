"""Extra outputs asked for and never read."""

import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("lm")
encoder = AutoModel.from_pretrained("encoder").to("cuda").eval()
lm = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()


@torch.inference_mode()
def predict(input_ids: torch.Tensor) -> torch.Tensor:
    outputs = encoder(input_ids.to("cuda"))
    pooled = encoder(input_ids, return_dict=True).last_hidden_state
    first = encoder(
        input_ids,
    )[0]
    return outputs.last_hidden_state[:, 0] + pooled[:, 0] + first[:, 0]


@torch.inference_mode()
def generate(prompt: str) -> str:
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    out = lm.generate(**{"input_ids": inputs.input_ids}, max_new_tokens=16)
    rich = lm.generate(
        inputs.input_ids, max_new_tokens=16, return_dict_in_generate=True
    )
    return tokenizer.decode(out[0]) + tokenizer.decode(rich.sequences[0])
