"""State deep-copied at every step and token."""

import copy
from copy import deepcopy

import torch


class Pipeline:
    def __init__(self, unet: torch.nn.Module, state: dict):
        self.unet = unet
        self.state = state

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        for step in range(num_inference_steps):
            state = copy.deepcopy(self.state)  # expect[low]: AWP607
            latents = self.unet(latents, step, state)
        return latents


@torch.inference_mode()
def generate(model: torch.nn.Module, ids: torch.Tensor, cache: list, max_new_tokens: int) -> torch.Tensor:
    for _ in range(max_new_tokens):
        branch = deepcopy(cache)  # expect: AWP607
        logits = model(ids, past_key_values=branch).logits
        ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return ids


class Residual(torch.nn.Module):
    def __init__(self, layers: torch.nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            before = copy.deepcopy(hidden_states)  # expect: AWP607
            kept = copy.deepcopy({"input": hidden_states, "scaled": hidden_states * 0.5})  # expect: AWP607
            hidden_states = before + layer(hidden_states) + kept["scaled"]
        return hidden_states
