"""Prefill with a mixture of experts, Mixtral of transformers."""

from __future__ import annotations

import torch
from common import options, serve
from transformers import MixtralConfig, MixtralForCausalLM

given = options(requests=60)
config = MixtralConfig(
    vocab_size=given.of(512, 32_000),
    hidden_size=given.of(64, 1024),
    intermediate_size=given.of(128, 2048),
    num_hidden_layers=given.of(2, 12),
    num_attention_heads=given.of(4, 16),
    num_key_value_heads=given.of(2, 4),
    num_local_experts=8,
)
model = MixtralForCausalLM(config).to(given.device, given.dtype).eval()


@torch.inference_mode()
def answer(number: int) -> torch.Tensor:
    tokens = torch.arange(given.of(64, 512)).repeat(2, 1) + number
    return model(tokens.to(given.device) % config.vocab_size, use_cache=False).logits[:, -1]


if __name__ == "__main__":
    serve(given, answer)
