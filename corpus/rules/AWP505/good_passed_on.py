"""The result goes on to somebody else, or the flag is a variable."""

import torch
from torch import nn


class Wrapper(nn.Module):
    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.encoder = encoder

    def forward(self, ids: torch.Tensor, output_attentions: bool = False):
        return self.encoder(ids, output_attentions=True)

    def predict(self, ids: torch.Tensor, output_attentions: bool):
        out = self.encoder(ids, output_attentions=output_attentions)
        kept = self.encoder(ids, output_attentions=True)
        return out.last_hidden_state, kept
