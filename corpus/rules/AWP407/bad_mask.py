"""A decode loop whose mask and cache are new and longer at every step."""

import torch
from torch import nn
from transformers import AutoModelForCausalLM
from transformers.cache_utils import DynamicCache


@torch.inference_mode()
def generate(model: nn.Module, input_ids: torch.Tensor, max_new_tokens: int) -> list:
    mask = torch.ones_like(input_ids)
    cache = DynamicCache()
    step, found = input_ids, []
    for _ in range(max_new_tokens):
        out = model(step, attention_mask=mask, past_key_values=cache)  # expect: AWP407
        step = out.logits[:, -1].argmax(-1, keepdim=True)
        mask = torch.cat([mask, torch.ones_like(step)], dim=-1)  # expect: AWP407
        found.append(step)
    return found


class Chat:
    def __init__(self):
        self.model = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()

    @torch.inference_mode()
    def generate(self, input_ids: torch.Tensor, max_new_tokens: int) -> list:
        past, found = None, []
        for _ in range(max_new_tokens):
            out = self.model(input_ids, past_key_values=past, use_cache=True)  # expect: AWP407
            past = out.past_key_values
            input_ids = out.logits[:, -1].argmax(-1, keepdim=True)
            found.append(input_ids)
        return found
