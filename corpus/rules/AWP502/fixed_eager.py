"""Unfused attention asked for at load time, in several spellings."""

import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

lm = AutoModelForCausalLM.from_pretrained("lm", dtype=torch.float16, attn_implementation="sdpa")


def build(name: str):
    encoder = AutoModel.from_pretrained(name, _attn_implementation="sdpa").to("cuda")
    mpt = AutoModelForCausalLM.from_pretrained(name, use_flash_attention=False)
    config = AutoConfig.from_pretrained(name)
    head = AutoModel.from_config(config, attn_implementation="sdpa")
    return encoder, mpt, head
