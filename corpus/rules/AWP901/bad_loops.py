"""One collective for each tensor of a list, for each row, and in a comprehension."""

import torch
import torch.distributed as dist
from torch.distributed import all_reduce


@torch.inference_mode()
def generate(model: torch.nn.Module, tokens: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    tokens = tokens.to("cuda")
    for _ in range(max_new_tokens):
        scores, heads = model(tokens)
        for head in heads:  # expect: AWP901
            dist.all_reduce(head)
        for row in range(scores.shape[0]):  # expect: AWP901
            all_reduce(scores[row], op=dist.ReduceOp.MAX)
        tokens = scores.argmax(-1)
    return tokens


class Runner(torch.nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        parts = hidden_states.chunk(4, dim=-1)
        for part in parts:  # expect: AWP901
            dist.broadcast(part, src=0)
        return torch.cat(parts, dim=-1)
