"""What a die decides at each step is scheduled sampling: training."""

import logging
import random

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, cell_model: nn.Module, steps: int, probability: float):
        super().__init__()
        self.cell_model = cell_model
        self.steps = steps
        self.probability = probability

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        state = tokens
        for step in range(self.steps):
            if step > 0 and random.random() < self.probability:
                logging.info(" scheduled sampling ")
                state = state.argmax(-1)
            state = self.cell_model(state)
        return state
