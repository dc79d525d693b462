"""Stretches of a recording, each of which needs what the one before left in the cache."""

import torch
from torch import nn


class Speech(nn.Module):
    def __init__(self, encoder: nn.Module, stride: int):
        super().__init__()
        self.encoder = encoder
        self.stride = stride

    @torch.inference_mode()
    def inference(self, audio: torch.Tensor, **kwargs) -> list:
        segments = []
        count = len(audio) // self.stride
        for i in range(count):
            kwargs["is_final"] = i == count - 1
            part = audio[i * self.stride : (i + 1) * self.stride]
            segments.append(self.encoder(part, **kwargs))
        return segments
