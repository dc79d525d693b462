"""Penalties and bans applied row by row at every token."""

import torch
from transformers import LogitsProcessor


class Repetition(LogitsProcessor):
    def __init__(self, penalty: float):
        self.penalty = penalty

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        for i in range(scores.shape[0]):  # expect: AWP205
            for token in set(input_ids[i].tolist()):
                scores[i, token] /= self.penalty
        return scores


class Sampler:
    def __init__(self, model: torch.nn.Module):
        self.model = model

    @torch.inference_mode()
    def generate(self, ids: torch.Tensor, banned: list, max_new_tokens: int) -> torch.Tensor:
        ids = ids.cuda()
        for _ in range(max_new_tokens):
            logits = self.model(ids)[:, -1]
            for row, words in enumerate(banned):  # expect: AWP205
                logits[row, words] = float("-inf")
            ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
        return ids
