"""The same decisions without asking Python."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            out = layer(hidden_states)
            big = out.norm() > 10.0
            hidden_states = torch.where(big, out / out.norm(), out)
            hidden_states = hidden_states * (attention_mask != 0).unsqueeze(-1)
        return hidden_states


@torch.no_grad()
def generate(model: nn.Module, input_ids: torch.Tensor, max_new_tokens: int, eos: int) -> torch.Tensor:
    input_ids = input_ids.to("cuda")
    for _ in range(max_new_tokens):
        next_token = model(input_ids)[:, -1].argmax(-1)
        input_ids = torch.cat([input_ids, next_token[:, None]], dim=1)
        token = next_token.item()
        if token == eos or token in (1, 2):
            break
    return input_ids
