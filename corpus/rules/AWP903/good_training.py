"""Training hides its collectives by other means."""

import torch
import torch.distributed as dist
from torch import nn


def train_step(model: nn.Module, head: nn.Module, batch: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    loss = model(batch.cuda()).mean()
    dist.all_reduce(loss)
    extra = head(batch.cuda()).mean()
    (loss + extra).backward()
    optimizer.step()
