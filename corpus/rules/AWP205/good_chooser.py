"""All rows go through one processor after the other; and samplers that are asked once a request."""

import torch
from torch import nn


class Served:
    def __init__(self, model: nn.Module):
        self.model = model.cuda().eval()

    @torch.inference_mode()
    def generate_token(self, input_ids: torch.Tensor, processors: list) -> torch.Tensor:
        scores = self.model(input_ids)[:, -1]
        for processor in processors:
            scores = processor(input_ids, scores)
        return scores.argmax(-1)

    @torch.inference_mode()
    def predict(self, input_ids: torch.Tensor, heads: list) -> list:
        out = self.model(input_ids)
        found = []
        for row, head in enumerate(heads):
            logits = out[row]
            found.append(head(logits))
        return found
