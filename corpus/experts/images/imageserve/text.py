"""From prompts to embeddings: bytes as tokens, a small encoder."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from imageserve.config import Sizes

PAD = 256


class TextEncoder(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.length = sizes.text_length
        self.embed = nn.Embedding(257, sizes.text_dim)
        self.position = nn.Parameter(torch.zeros(sizes.text_length, sizes.text_dim))
        layer = nn.TransformerEncoderLayer(
            sizes.text_dim, 4, 4 * sizes.text_dim, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, sizes.text_layers, enable_nested_tensor=False)

    def tokens(self, text: str) -> list[int]:
        """Exactly ``length`` tokens: cut, or padded."""
        data = list(text.encode())[: self.length]
        return data + [PAD] * (self.length - len(data))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.layers(self.embed(tokens) + self.position)


def encode_prompts(
    encoder: TextEncoder, prompts: Sequence[str], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings (prompts, length, dim) and the mask (prompts, length) of what is padding."""
    tokens = torch.tensor([encoder.tokens(prompt) for prompt in prompts]).to(device)
    return encoder(tokens), tokens == PAD
