"""A decode loop that makes its bookkeeping tensors on the CPU."""

import torch


@torch.inference_mode()
def generate(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    input_ids = input_ids.to("cuda")
    for step in range(max_new_tokens):
        attention_mask = torch.ones_like(input_ids)
        offset = torch.zeros((1, 1), dtype=torch.long, device=input_ids.device)
        logits = model(input_ids, attention_mask, offset)[:, -1]
        grown = torch.eye(2, device="cuda")
        logits = logits * grown.sum()
        input_ids = torch.cat([input_ids, logits.argmax(-1, keepdim=True)], dim=1)
    return input_ids
