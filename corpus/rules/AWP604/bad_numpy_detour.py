"""Device tensors that take a detour over NumPy and CPU tensors."""

import numpy as np
import torch
from torch import nn


class Tracker(nn.Module):
    def __init__(self, blocks: nn.ModuleList):
        super().__init__()
        self.blocks = blocks

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            values = attention_mask.cpu().numpy()  # expect[low]: AWP604
            padded = np.pad(values, ((0, 0), (1, 0)))
            mask = torch.from_numpy(padded[:, :-1]).to(hidden_states.device)
            hidden_states = block(hidden_states * mask.unsqueeze(-1))
        return hidden_states


@torch.no_grad()
def generate(model: nn.Module, input_ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    input_ids = input_ids.to("cuda")
    for _ in range(max_new_tokens):
        hidden = model(input_ids)[:, -1]
        ranks = hidden.to("cpu").argsort(dim=-1)  # expect[low]: AWP604
        input_ids = torch.cat([input_ids, ranks[:, :1].cuda()], dim=1)
        lengths = input_ids.ne(0).sum(-1).tolist()  # expect[low]: AWP604
        limits = torch.tensor([n + 1 for n in lengths], device="cuda")
        input_ids = input_ids * (limits > 0)[:, None]
    return input_ids
