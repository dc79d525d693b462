"""Host buffers of which the code does not tell that they are pageable, and a copy that a test lets run once."""

import numpy as np
import torch
from torch import nn


class Buffer:
    """A pinned host buffer and its twin on the device."""

    def __init__(self, size: int, pin: bool):
        self.cpu = torch.zeros(size, dtype=torch.int32, pin_memory=pin)
        self.gpu = torch.zeros(size, dtype=torch.int32, device="cuda")
        self.np = self.cpu.numpy()

    def copy_to_gpu(self, n: int) -> torch.Tensor:
        return self.gpu[:n].copy_(self.cpu[:n], non_blocking=True)


class InputBatch:
    def __init__(self, size: int, pin: bool):
        self.num_computed = torch.zeros(size, dtype=torch.int32, pin_memory=pin)


class Attention(nn.Module):
    def __init__(self, dim: int, size: int):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.dim = dim
        self.table = self.compute_table(size)

    def compute_table(self, size: int) -> torch.Tensor:
        return torch.from_numpy(np.outer(np.arange(size), np.arange(self.dim))).float()

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        if self.table.shape[0] != hidden_states.shape[1]:
            self.table = self.compute_table(hidden_states.shape[1]).to(hidden_states.device)
        q, k, v = self.qkv(hidden_states * self.table).chunk(3, dim=-1)
        return nn.functional.scaled_dot_product_attention(q, k, v)


class Runner:
    def __init__(self, layers: nn.ModuleList, batch: InputBatch, buffer: Buffer, size: int):
        self.layers = layers
        self.batch = batch
        self.buffer = buffer
        self.computed = torch.zeros(size, dtype=torch.int32, device="cuda")

    @torch.inference_mode()
    def generate(self, hidden_states: torch.Tensor, max_new_tokens: int, n: int) -> torch.Tensor:
        for _ in range(max_new_tokens):
            self.computed[:n].copy_(self.batch.num_computed[:n], non_blocking=True)
            self.buffer.copy_to_gpu(n)
            for layer in self.layers:
                hidden_states = layer(hidden_states + self.computed[:n])
        return hidden_states
