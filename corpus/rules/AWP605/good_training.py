"""Flushes behind an option, every hundred steps, between epochs, and after running out of memory."""

import torch


class Trainer:
    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, flush_steps: int):
        self.model = model
        self.optimizer = optimizer
        self.flush_steps = flush_steps
        self.step = 0

    def training_step(self, model: torch.nn.Module, inputs: dict) -> torch.Tensor:
        loss = model(**inputs).loss
        del inputs
        if self.flush_steps and self.step % self.flush_steps == 0:
            torch.cuda.empty_cache()
        loss.backward()
        return loss.detach()

    def train(self, loader, epochs: int) -> None:
        for epoch in range(epochs):
            for batch in loader:
                try:
                    self.training_step(self.model, batch)
                except torch.OutOfMemoryError:
                    torch.cuda.empty_cache()
                self.optimizer.step()
            torch.cuda.empty_cache()
