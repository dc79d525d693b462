"""Vectorised processors; loops over processors, layers and host rows."""

import torch
from transformers import LogitsProcessor


class Repetition(LogitsProcessor):
    def __init__(self, penalty: float):
        self.penalty = penalty

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        seen = scores.gather(1, input_ids)
        seen = torch.where(seen < 0, seen * self.penalty, seen / self.penalty)
        return scores.scatter(1, input_ids, seen)


class Sampler:
    def __init__(self, model: torch.nn.Module, processors: list):
        self.model = model
        self.processors = processors

    @torch.inference_mode()
    def generate(self, ids: torch.Tensor, max_new_tokens: int) -> list:
        ids = ids.cuda()
        kept = []
        for _ in range(max_new_tokens):
            logits = self.model(ids)[:, -1]
            for processor in self.processors:
                logits = processor(ids, logits)
            best = logits.topk(5).values.tolist()
            for i in range(len(best)):
                kept.append(best[i][0])
            ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
        return kept
