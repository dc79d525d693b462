"""Greedy text generation with a Llama of transformers."""

from __future__ import annotations

import torch
from common import options, serve
from transformers import LlamaConfig, LlamaForCausalLM

given = options(requests=40)
config = LlamaConfig(
    vocab_size=given.of(512, 32_000),
    hidden_size=given.of(64, 2048),
    intermediate_size=given.of(128, 5632),
    num_hidden_layers=given.of(2, 22),
    num_attention_heads=given.of(4, 32),
    num_key_value_heads=given.of(2, 4),
    eos_token_id=None,
    pad_token_id=0,
)
model = LlamaForCausalLM(config).to(given.device, given.dtype).eval()


def answer(number: int) -> torch.Tensor:
    prompt = torch.arange(1, 17).repeat(4, 1) + number
    return model.generate(
        prompt.to(given.device), attention_mask=torch.ones_like(prompt).to(given.device), max_new_tokens=32,
        do_sample=False,
    )  # fmt: skip


if __name__ == "__main__":
    serve(given, answer)
