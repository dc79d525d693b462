"""Softmax, its logarithm, log-sum-exp, softplus and friends from exponentials."""

import torch
from torch import nn


class Sampler(nn.Module):
    def forward(self, logits: torch.Tensor, hidden_states: torch.Tensor) -> torch.Tensor:
        probs = torch.softmax(logits, dim=-1)
        logprobs = nn.functional.log_softmax(logits, dim=-1)
        other = nn.functional.log_softmax(logits, dim=-1)
        total = torch.logsumexp(logits, dim=-1)
        rate = nn.functional.softplus(hidden_states)
        decay = nn.functional.softplus(hidden_states)
        mish = nn.functional.mish(hidden_states)
        gate = torch.sigmoid(hidden_states)
        leaky = nn.functional.leaky_relu(hidden_states, 0.1)
        a, b = hidden_states.chunk(2, dim=-1)
        glu = nn.functional.glu(hidden_states, dim=-1)
        return probs.sum() + logprobs.sum() + other.sum() + total.sum() + (rate + decay + mish + gate + leaky).sum() + glu.sum()
