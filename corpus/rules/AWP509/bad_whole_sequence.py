"""Decode loops that run the whole sequence again for every token."""

import torch
from torch import nn


@torch.no_grad()
def generate(model: nn.Module, ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    for _ in range(max_new_tokens):  # expect: AWP509
        logits = model(ids)
        picked = logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, picked], dim=1)
    return ids


class Captioner:
    def __init__(self, decoder: nn.Module, eos: int):
        self.decoder = decoder
        self.eos = eos

    @torch.inference_mode()
    def predict(self, features: torch.Tensor, tokens: torch.Tensor, max_len: int) -> torch.Tensor:
        while tokens.shape[1] < max_len:  # expect: AWP509
            logits = self.decoder(tokens, features)
            next_token = torch.multinomial(logits[:, -1].softmax(-1), 1)
            tokens = torch.cat((tokens, next_token), dim=-1)
        return tokens
