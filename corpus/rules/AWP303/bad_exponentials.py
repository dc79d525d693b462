"""Softmax, its logarithm, log-sum-exp, softplus and friends from exponentials."""

import torch
from torch import nn


class Sampler(nn.Module):
    def forward(self, logits: torch.Tensor, hidden_states: torch.Tensor) -> torch.Tensor:
        shifted = logits - logits.max(dim=-1, keepdim=True).values
        powers = torch.exp(shifted)
        probs = powers / powers.sum(dim=-1, keepdim=True)  # expect: AWP303
        logprobs = torch.log(torch.softmax(logits, dim=-1))  # expect: AWP303
        other = logits - torch.logsumexp(logits, dim=-1, keepdim=True)  # expect: AWP303
        total = logits.exp().sum(-1).log()  # expect: AWP303
        rate = torch.log(1 + torch.exp(hidden_states))  # expect: AWP303
        decay = torch.log1p(hidden_states.exp())  # expect: AWP303
        mish = hidden_states * torch.tanh(nn.functional.softplus(hidden_states))  # expect: AWP303
        gate = 1 / (1 + torch.exp(-hidden_states))  # expect: AWP303
        leaky = torch.where(hidden_states > 0, hidden_states, 0.1 * hidden_states)  # expect: AWP303
        a, b = hidden_states.chunk(2, dim=-1)
        glu = a * torch.sigmoid(b)  # expect: AWP303
        return probs.sum() + logprobs.sum() + other.sum() + total.sum() + (rate + decay + mish + gate + leaky).sum() + glu.sum()
