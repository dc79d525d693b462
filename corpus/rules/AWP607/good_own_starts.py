"""Copies that each prompt needs for its own, and those of a few Python numbers."""

import copy

import torch


class Answers:
    def __init__(self, model: torch.nn.Module):
        self.model = model

    @torch.inference_mode()
    def answers(self, prefix: torch.Tensor, prompts: list) -> list:
        cache = self.model(prefix, use_cache=True).past_key_values
        found = []
        for prompt in prompts:
            own = copy.deepcopy(cache)  # the model writes into it  # expect[low]: AWP607
            found.append(self.model(prompt, past_key_values=own).logits[:, -1])
        return found


class Layer(torch.nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        sizes = copy.deepcopy(list(hidden_states.shape))  # expect[low]: AWP607
        return hidden_states.reshape(sizes)


class Model(torch.nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer() for _ in range(depth)])

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states
