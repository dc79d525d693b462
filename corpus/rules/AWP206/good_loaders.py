"""Workers, data in memory, training, settings, loops without a model."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


@torch.inference_mode()
def predict(model: nn.Module, images: Dataset) -> list[torch.Tensor]:
    loader = DataLoader(images, batch_size=64, num_workers=4, pin_memory=True)
    return_value = []
    for batch in loader:
        return_value.append(model(batch.to("cuda", non_blocking=True)))
    return return_value


@torch.inference_mode()
def in_memory(model: nn.Module, features: torch.Tensor) -> list[torch.Tensor]:
    data = TensorDataset(features)
    found = []
    for (batch,) in DataLoader(data, batch_size=256):
        found.append(model(batch.to("cuda")))
    return found


def train(model: nn.Module, images: Dataset, optimizer: torch.optim.Optimizer) -> None:
    for batch in DataLoader(images, batch_size=1):
        loss = model(batch.to("cuda")).mean()
        loss.backward()
        optimizer.step()


@torch.inference_mode()
def from_settings(model: nn.Module, images: Dataset, workers: int, **options) -> list[torch.Tensor]:
    found = []
    for batch in DataLoader(images, batch_size=16, num_workers=workers):
        found.append(model(batch.to("cuda")))
    for batch in DataLoader(images, **options):
        found.append(model(batch.to("cuda")))
    return found


def lengths(images: Dataset) -> list[int]:
    return [len(batch) for batch in DataLoader(images)]


@torch.inference_mode()
def own_batches(model: nn.Module, images: Dataset, sampler) -> list[torch.Tensor]:
    found = []
    for batch in DataLoader(images, batch_sampler=sampler, num_workers=8):
        found.append(model(batch.to("cuda")))
    return found
