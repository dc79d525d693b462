"""Extra outputs asked for and never read."""

import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("lm")
encoder = AutoModel.from_pretrained("encoder").to("cuda").eval()
lm = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()


@torch.inference_mode()
def predict(input_ids: torch.Tensor) -> torch.Tensor:
    outputs = encoder(input_ids.to("cuda"), output_hidden_states=True)  # expect[low]: AWP312
    pooled = encoder(input_ids, return_dict=True, output_hidden_states=True).last_hidden_state  # expect[low]: AWP312
    first = encoder(  # expect[low]: AWP312
        input_ids,
        output_hidden_states=True,
    )[0]
    return outputs.last_hidden_state[:, 0] + pooled[:, 0] + first[:, 0]


@torch.inference_mode()
def generate(prompt: str) -> str:
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    out = lm.generate(**{"input_ids": inputs.input_ids}, max_new_tokens=16)
    rich = lm.generate(  # expect: AWP312
        inputs.input_ids, max_new_tokens=16, return_dict_in_generate=True, output_scores=True
    )
    return tokenizer.decode(out[0]) + tokenizer.decode(rich.sequences[0])
