"""Fused or default attention; a fallback; tests."""

import torch
from transformers import AutoModelForCausalLM

lm = AutoModelForCausalLM.from_pretrained("lm", dtype=torch.float16, attn_implementation="sdpa")
plain = AutoModelForCausalLM.from_pretrained("lm")
fast = AutoModelForCausalLM.from_pretrained("lm", attn_implementation="flash_attention_2")


def build(name: str, implementation: str):
    try:
        return AutoModelForCausalLM.from_pretrained(name, attn_implementation=implementation)
    except ValueError:
        return AutoModelForCausalLM.from_pretrained(name, attn_implementation="eager")


def test_same_numbers(name: str) -> None:
    assert AutoModelForCausalLM.from_pretrained(name, attn_implementation="eager") is not None
