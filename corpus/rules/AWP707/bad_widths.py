"""Odd widths of large layers at half precision."""

import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.lm_head = nn.Linear(768, 50257, bias=False)  # expect: AWP707
        self.up = nn.Linear(in_features=1023, out_features=4096)  # expect: AWP707

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.lm_head(hidden_states)


head = Head().to("cuda", torch.float16)
