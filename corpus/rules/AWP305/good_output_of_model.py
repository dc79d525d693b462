"""Heads that keep the wanted positions, and one that gets a single row a sequence."""

import torch
from torch import nn
from transformers import AutoModel, GenerationMixin, PreTrainedModel


class KeepsForCausalLM(PreTrainedModel, GenerationMixin):
    def __init__(self, config):
        super().__init__(config)
        self.model = AutoModel.from_config(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, input_ids: torch.LongTensor, logits_to_keep: int = 0):
        outputs = self.model(input_ids=input_ids)
        hidden_states = outputs[0]
        return self.lm_head(hidden_states[:, -logits_to_keep:, :])


class RowForCausalLM(PreTrainedModel, GenerationMixin):
    def __init__(self, config):
        super().__init__(config)
        self.model = AutoModel.from_config(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, input_ids: torch.LongTensor, positions: torch.Tensor):
        outputs = self.model(input_ids=input_ids)
        hidden_states = outputs[0][torch.arange(positions.shape[0]), positions]
        return self.lm_head(hidden_states)
