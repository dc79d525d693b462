"""Tensors for a library that works on the host, longer than any wait for them."""

import torch
from torch import nn


class Pooling(nn.Module):
    def __init__(self, net: nn.Module, factor: float) -> None:
        super().__init__()
        self.net = net
        self.factor = factor

    @torch.inference_mode()
    def encode(self, documents: list) -> list:
        found = []
        for document in documents:
            found.append(clustered(self.net(document.cuda()), self.factor))
        return found


def clustered(embedding: torch.Tensor, factor: float) -> torch.Tensor:
    from scipy.cluster import hierarchy

    rows = embedding.cpu().float()
    distances = (1 - rows @ rows.T).numpy()
    labels = hierarchy.fcluster(hierarchy.linkage(distances), t=len(rows) // factor, criterion="maxclust")
    return torch.from_numpy(labels).to(embedding.device)
