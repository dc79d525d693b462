"""Parts of the batch that fit into memory, and tables about scores."""

import torch
from torch import nn


class Verifier:
    def __init__(self, model: nn.Module, head: nn.Module):
        self.model = model
        self.head = head

    def verify(self, logits: torch.Tensor, cu_num_logits: torch.Tensor, request_chunks: list) -> list:
        sampled = []
        for start, end in request_chunks:
            bounds = cu_num_logits[start : end + 1]
            part = logits[start:end]
            sampled.append((bounds, part.argmax(dim=-1)))
        return sampled

    @torch.inference_mode()
    def generate(self, ids: torch.Tensor, max_new_tokens: int, request_chunks: list) -> list:
        found = []
        for _ in range(max_new_tokens):
            logits = self.head(self.model(ids))
            cu_num_logits = torch.arange(logits.shape[0] + 1, device=logits.device)
            found.append(self.verify(logits, cu_num_logits, request_chunks))
        return found
