"""Clustering that SciPy does: no form of it runs on the device."""

import torch
from scipy.cluster import hierarchy
from torch import nn


class Pooling(nn.Module):
    def __init__(self, layers: nn.ModuleList, factor: int):
        super().__init__()
        self.layers = layers
        self.factor = factor

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states)
            distances = torch.cdist(hidden_states, hidden_states).cpu().numpy()  # expect[low]: AWP604
            labels = hierarchy.fcluster(hierarchy.linkage(distances), t=self.factor, criterion="maxclust")
            groups = torch.from_numpy(labels).to(hidden_states.device)
            hidden_states = hidden_states.index_add(0, groups, hidden_states)
        return hidden_states
