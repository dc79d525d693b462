"""Host data, other objects, tests, and a second call on another branch."""

import copy

import numpy as np
import torch
from torch import nn


class Recorder:
    def __init__(self, options: dict):
        self.options = options

    def clone(self) -> "Recorder":
        return Recorder(copy.deepcopy(self.options))


class Model(nn.Module):
    def forward(self, hidden_states: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        hidden_states = hidden_states.to(dtype)
        if hidden_states.device.type == "mps":
            hidden_states = hidden_states.to(dtype)
        return hidden_states


def setup(recorder: Recorder) -> Recorder:
    return recorder.clone().clone()


def table(values: np.ndarray) -> torch.Tensor:
    host = torch.from_numpy(values).cpu()
    return host.float().float()


def test_round_trip():
    x = torch.ones(3, device="cuda")
    assert torch.equal(x.clone().clone(), x)
