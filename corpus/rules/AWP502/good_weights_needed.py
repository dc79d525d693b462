"""The weights are what the program is after."""

import torch
from transformers import AutoModel

model = AutoModel.from_pretrained("encoder", attn_implementation="eager").eval()


@torch.inference_mode()
def predict(ids: torch.Tensor) -> list:
    out = model(ids, output_attentions=True)
    return [a.mean().item() for a in out.attentions]
