"""A decode loop that gives the model the new token alone, behind a call that has filled the cache."""

import torch
from torch import nn


class Speaker(nn.Module):
    def __init__(self, decoder: nn.Module, dim: int, codes: int) -> None:
        super().__init__()
        self.decoder = decoder
        self.embed = nn.Embedding(codes, dim)
        self.speech_head = nn.Linear(dim, codes)

    @torch.inference_mode()
    def generate(self, embeds: torch.Tensor, max_new_tokens: int) -> list:
        outputs = self.decoder(inputs_embeds=embeds, use_cache=True)
        past = outputs.past_key_values
        token = self.speech_head(outputs[0][:, -1:])[:, -1].argmax(-1, keepdim=True)
        tokens = []
        for _ in range(max_new_tokens):
            outputs = self.decoder(inputs_embeds=self.embed(token), past_key_values=past, use_cache=True)
            hidden_states = outputs[0]
            past = outputs.past_key_values
            logits = self.speech_head(hidden_states)  # expect[low]: AWP305
            token = logits[:, -1].argmax(-1, keepdim=True)
            tokens.append(token)
        return tokens
