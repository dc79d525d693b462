"""A training program validates as well; gradients are wanted there."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer):
        self.model = model.cuda()
        self.optimizer = optimizer

    def train_step(self, batch: torch.Tensor) -> torch.Tensor:
        loss = self.model(batch.cuda()).mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def predict(self, batch: torch.Tensor) -> torch.Tensor:
        return self.model(batch.cuda())
