"""Below an option that keywords ask for, and that is off unless they do."""

import torch
from torch import nn


class Recognizer(nn.Module):
    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.encoder = encoder

    @torch.inference_mode()
    def inference(self, features: torch.Tensor, **kwargs) -> list:
        timed = kwargs.get("output_timestamp", False)
        found = []
        hidden = self.encoder(features.to("cuda"))
        for b in range(features.shape[0]):
            times = []
            if timed:
                for token in hidden[b].argmax(-1):
                    if token != 0:  # expect[low]: AWP102
                        times.append(len(times))
            found.append(times)
        return found
