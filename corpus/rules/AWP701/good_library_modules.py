"""Modules of a library whose base class lies in a file that is not shown: their callers decide, some of them to train."""

import torch
from torch import nn

from .modeling_utils import PreTrainedModel


class Encoder(PreTrainedModel):
    def __init__(self, config) -> None:
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(nn.Linear(config.hidden_size, config.hidden_size) for _ in range(config.layers))

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        hidden_states = self.embed(input_ids)
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states


class Classifier(PreTrainedModel):
    def __init__(self, config) -> None:
        super().__init__(config)
        self.encoder = Encoder(config)
        self.head = nn.Linear(config.hidden_size, config.labels)

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor | None = None) -> tuple:
        logits = self.head(self.encoder(input_ids))
        loss = nn.functional.cross_entropy(logits, labels) if labels is not None else None
        return loss, logits
