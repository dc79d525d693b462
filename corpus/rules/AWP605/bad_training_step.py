"""The allocator's cache flushed after every training step."""

import torch


class Trainer:
    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer):
        self.model = model
        self.optimizer = optimizer

    def training_step(self, model: torch.nn.Module, inputs: dict) -> torch.Tensor:
        model.train()
        with torch.autocast("cuda"):
            loss = model(**inputs).loss
        del inputs
        torch.cuda.empty_cache()  # expect: AWP605
        loss.backward()
        return loss.detach()

    def train_epoch(self, loader) -> None:
        for batch in loader:
            loss = self.model(**batch).loss
            loss.backward()
            self.optimizer.step()
            torch.cuda.empty_cache()  # expect: AWP605
