"""Inference loops over loaders that work in their own process."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm


class Images(Dataset):
    def __init__(self, paths: list[str]):
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.load(self.paths[index])


@torch.inference_mode()
def predict(model: nn.Module, paths: list[str]) -> list[torch.Tensor]:
    loader = DataLoader(Images(paths), batch_size=64, num_workers=4, pin_memory=True)
    found = []
    for batch in tqdm(loader):
        found.append(model(batch.to("cuda")))
    return found


@torch.no_grad()
def embed(encoder: nn.Module, images: Dataset) -> torch.Tensor:
    parts = []
    for index, batch in enumerate(DataLoader(images, num_workers=4)):
        parts.append(encoder(batch.cuda()).cpu())
    return torch.cat(parts)


def score(model: nn.Module, images: Dataset) -> list[float]:
    loader = torch.utils.data.DataLoader(dataset=images, batch_size=1, num_workers=4, pin_memory=True)
    scores = []
    with torch.no_grad():
        for batch in loader:
            scores.append(model(batch.to("cuda")).mean())
    return scores


@torch.inference_mode()
def features(encoder: nn.Module, images: Dataset) -> list[torch.Tensor]:
    loader = DataLoader(images, batch_size=16, num_workers=4, pin_memory=True)
    return [encoder(batch.to("cuda")) for batch in loader]
