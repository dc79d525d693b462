"""Embeddings with sentence-transformers: a BERT with random weights and a vocabulary made on the spot."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from common import options, serve
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizerFast

given = options(requests=40)
WORDS = [f"word{number}" for number in range(200)]


def encoder() -> SentenceTransformer:
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = Path(folder) / "vocab.txt"
        vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
        BertTokenizerFast(vocab_file=str(vocabulary)).save_pretrained(folder)
        config = BertConfig(
            vocab_size=len(WORDS) + 5,
            hidden_size=given.of(64, 768),
            intermediate_size=given.of(128, 3072),
            num_hidden_layers=given.of(2, 12),
            num_attention_heads=given.of(4, 12),
        )
        BertModel(config).save_pretrained(folder)
        body = Transformer(folder, max_seq_length=64)
    return SentenceTransformer(modules=[body, Pooling(config.hidden_size)], device=str(given.device)).to(given.dtype)


model = encoder()


def answer(number: int) -> torch.Tensor:
    texts = [" ".join(WORDS[(number + at) % 200] for at in range(5 + row % 20)) for row in range(given.of(16, 256))]
    return model.encode(texts, batch_size=given.of(8, 32), convert_to_tensor=True, show_progress_bar=False)


if __name__ == "__main__":
    serve(given, answer)
