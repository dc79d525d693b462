"""Copies that are kept, written to or round on purpose, and calls that are not the same."""

import torch
from torch import nn


class Cache(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.register_buffer("state", torch.zeros(1, dim))

    def forward(self, hidden_states: torch.Tensor, latents: torch.Tensor) -> torch.Tensor:
        rounded = hidden_states.half().float()
        quantised = hidden_states.to(torch.float8_e4m3fn).to(torch.bfloat16)
        moved = latents.to("cuda").to(torch.float16)
        flat = hidden_states.transpose(1, 2).contiguous().view(hidden_states.shape[0], -1)
        kept = hidden_states.detach().clone()
        kept[:, 0] = 0
        state = self.state.clone()
        self.state.copy_(rounded[:1])
        wide = hidden_states.to(dtype=torch.float32).to(device="cuda")
        again = hidden_states.float()
        hidden_states = hidden_states.half()
        narrow = hidden_states.float()
        return rounded + quantised + moved + flat + kept + state + wide + again + narrow
