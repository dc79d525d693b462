"""Reads while a graph is captured, without the copy that callers bring, behind a debugging switch, on other machines."""

import envs
import torch
from torch import nn


class Backend(nn.Module):
    def forward(self, hidden_states: torch.Tensor, seq_lens: torch.Tensor, seq_lens_cpu=None, in_capture: bool = False):
        for layer in self.layers:
            longest = seq_lens.max().item() if in_capture else self.bound
            lengths = seq_lens_cpu if seq_lens_cpu is not None else seq_lens.cpu()
            hidden_states = layer(hidden_states, longest, lengths)
            if envs.ENGINE_DEBUG_SHARDS.get():
                self.tell(hidden_states)
            if not hidden_states.is_cuda:
                hidden_states = hidden_states * seq_lens.max().item()
        return hidden_states

    def tell(self, hidden_states: torch.Tensor) -> None:
        print(hidden_states.max().item())


class AscendAttention(nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return hidden_states * hidden_states.max().item()


class SpCheck(nn.Module):
    """Debug tally over the layers of one pass."""

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        self.worst = hidden_states.max().item()
        return hidden_states
