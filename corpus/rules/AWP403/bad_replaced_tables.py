"""A table that a module of every step puts in its own place."""

import torch
from torch import nn
from transformers import LogitsProcessor


class NoEnd(LogitsProcessor):
    def __init__(self, eos_token_ids: list, least: int):
        self.eos_token_ids = torch.tensor(eos_token_ids)
        self.least = least

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        self.eos_token_ids = self.eos_token_ids.to(scores.device)  # expect[low]: AWP403
        ends = torch.isin(torch.arange(scores.shape[-1], device=scores.device), self.eos_token_ids)
        return scores.masked_fill(ends & (input_ids.shape[-1] < self.least), -float("inf"))


class Rope(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.freqs = torch.arange(0, dim, 2) / dim

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        self.freqs = self.freqs.to(hidden_states.device)  # expect: AWP403
        return torch.outer(torch.arange(hidden_states.shape[1], device=hidden_states.device), self.freqs)


class Denoiser(nn.Module):
    _repeated_blocks = ["Block"]  # what its users compile

    def __init__(self, layers: nn.ModuleList, dim: int):
        super().__init__()
        self.rope = Rope(dim)
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        table = self.rope(hidden_states)
        for layer in self.layers:
            hidden_states = layer(hidden_states, table)
        return hidden_states


class Pipeline:
    def __init__(self, denoiser: Denoiser):
        self.denoiser = denoiser

    @torch.inference_mode()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        for _ in range(num_inference_steps):
            latents = latents - 0.1 * self.denoiser(latents)
        return latents
