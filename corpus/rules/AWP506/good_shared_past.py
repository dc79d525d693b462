"""Keys and values of another loop over the same layers: they are attended to, and nothing is kept."""

import torch
from torch import nn
from transformers import GenerationMixin, PreTrainedModel


class SharedAttention(nn.Module):
    def __init__(self, layer_idx: int):
        super().__init__()
        self.layer_idx = layer_idx

    def forward(self, query: torch.Tensor, key_states: torch.Tensor, value_states: torch.Tensor, shared_kv: dict) -> tuple:
        if (past := shared_kv.get(self.layer_idx)) is not None:
            key_states = torch.cat([past[0], key_states], dim=-2)  # expect[low]: AWP506
            value_states = torch.cat([past[1], value_states], dim=-2)  # expect[low]: AWP506
        return nn.functional.scaled_dot_product_attention(query, key_states, value_states), None


class SharedForCausalLM(PreTrainedModel, GenerationMixin):
    def __init__(self, config) -> None:
        super().__init__(config)
        self.layers = nn.ModuleList(SharedAttention(i) for i in range(config.num_hidden_layers))

    def forward(self, input_ids: torch.Tensor, inputs_embeds: torch.Tensor, shared_kv: dict) -> torch.Tensor:
        hidden_states = inputs_embeds
        for layer in self.layers:
            hidden_states, _ = layer(hidden_states, hidden_states, hidden_states, shared_kv)
        return hidden_states
