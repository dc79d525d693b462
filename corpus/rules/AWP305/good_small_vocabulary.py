"""Heads that cost little: of a small vocabulary, and of a model that drafts one position at a time."""

import torch
from torch import nn
from transformers import PreTrainedModel


class CodesConfig:
    vocab_size: int = 2048


class CodesForCausalLM(PreTrainedModel):
    def __init__(self, config: CodesConfig) -> None:
        super().__init__(config)
        self.model = nn.Linear(8, 8)
        self.lm_head = nn.Linear(8, config.vocab_size)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        hidden_states = self.model(input_ids)
        logits = self.lm_head(hidden_states)
        return logits


class CodesAssistantForCausalLM(PreTrainedModel):
    def __init__(self, config: CodesConfig) -> None:
        super().__init__(config)
        self.model = nn.Linear(8, 8)
        self.lm_head = nn.Linear(8, 200_000)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        hidden_states = self.model(input_ids)
        logits = self.lm_head(hidden_states)
        return logits
