"""The head on every position, then one position read: inline, by name, with a cast in between."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, layers: nn.ModuleList, dim: int, vocab: int):
        super().__init__()
        self.layers = layers
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        logits = self.lm_head(hidden_states[:, -1:])
        return logits[:, -1, :]


class Inline(nn.Module):
    def __init__(self, dim: int, vocab: int):
        super().__init__()
        self.head = nn.Linear(dim, vocab)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x[:, -1:])[:, -1]


class Cast(nn.Module):
    def __init__(self, dim: int, vocab: int):
        super().__init__()
        self.embed_out = nn.Linear(dim, vocab, bias=False)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        logits = self.embed_out(hidden_states[:, -1:]).float()
        probs = torch.softmax(logits[:, -1, :], dim=-1)
        return probs.argmax(-1) + logits[:, -1].argmax(-1)


class TinyForCausalLM(nn.Module):
    """No wish for fewer positions can reach this head."""

    def __init__(self, model: nn.Module, dim: int, vocab: int):
        super().__init__()
        self.model = model
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor = None):
        hidden_states = self.model(input_ids, attention_mask)
        logits = self.lm_head(hidden_states)
        logits = logits.float()
        return logits
