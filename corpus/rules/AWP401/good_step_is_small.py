"""A loop over tokens whose methods run a layer at most, no model."""

import torch
from torch import nn


class Counter:
    def __init__(self, dim: int):
        self.penalty = nn.Linear(dim, dim).to("cuda")

    def weigh(self, scores: torch.Tensor) -> torch.Tensor:
        return self.penalty(scores)

    @torch.inference_mode()
    def weights(self, scores: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        for _ in range(max_new_tokens):
            scores = self.weigh(scores)
        return scores


if __name__ == "__main__":
    counter = Counter(64)
    while True:
        counter.weights(torch.full((1, 64), float(input("score: ")), device="cuda"), 32)
