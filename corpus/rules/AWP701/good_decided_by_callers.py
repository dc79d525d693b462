"""Others decide about gradients, or there are none: they are not told of at the default level."""

import torch
from mmengine.model import BaseModel
from torch import nn


class Captioner(BaseModel):
    def __init__(self, vision_model: nn.Module, head: nn.Module):
        super().__init__()
        self.vision_model = vision_model
        self.head = head


class Answers(Captioner):
    def predict(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.vision_model(images))  # expect[low]: AWP701


class Search(nn.Module):
    def __init__(self, model: nn.Module, size: int):
        super().__init__()
        self.model = model
        self.size = size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x)[: self.size]


def predict(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return Search(model, size=4).forward(x)  # expect[low]: AWP701


class Meeting:
    def __init__(self, cluster_model: nn.Module):
        self.cluster_model = cluster_model.to("cuda").eval()

    def predict(self, embeddings: torch.Tensor) -> torch.Tensor:
        return self.cluster_model(embeddings.cpu())  # expect[low]: AWP701
