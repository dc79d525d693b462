"""Beam search with a T5 of transformers."""

from __future__ import annotations

import torch
from common import options, serve
from transformers import T5Config, T5ForConditionalGeneration

given = options(requests=30)
config = T5Config(
    vocab_size=given.of(512, 32_128),
    d_model=given.of(64, 768),
    d_kv=given.of(16, 64),
    d_ff=given.of(128, 2048),
    num_layers=given.of(2, 12),
    num_heads=given.of(4, 12),
    decoder_start_token_id=0,
)
model = T5ForConditionalGeneration(config).to(given.device, given.dtype).eval()


def answer(number: int) -> torch.Tensor:
    text = torch.arange(2, 34).repeat(4, 1) + number
    return model.generate(text.to(given.device), num_beams=4, max_new_tokens=24, no_repeat_ngram_size=3)


if __name__ == "__main__":
    serve(given, answer)
