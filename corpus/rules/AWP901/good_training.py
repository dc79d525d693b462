"""Gradients in a training step."""

import torch
import torch.distributed as dist
from torch import nn


def train_step(model: nn.Module, batch: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    model(batch.cuda()).mean().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
