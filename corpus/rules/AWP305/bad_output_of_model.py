"""The head of a causal model runs on everything that the model returned."""

import torch
from torch import nn
from transformers import AutoModel, GenerationMixin, PreTrainedModel


class TinyForCausalLM(PreTrainedModel, GenerationMixin):
    def __init__(self, config):
        super().__init__(config)
        self.model = AutoModel.from_config(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, input_ids: torch.LongTensor, attention_mask: torch.Tensor | None = None):
        outputs = self.model(input_ids=input_ids, attention_mask=attention_mask)
        hidden_states = outputs[0]
        logits = self.lm_head(hidden_states)  # expect: AWP305
        logits = logits.float()
        return logits
