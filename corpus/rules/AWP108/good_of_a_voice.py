"""What a voice is turned into, once for all that is said with it."""

import torch
from torch import nn


class Speaker:
    def __init__(self, encoder: nn.Module, stats: torch.Tensor):
        self.encoder = encoder.to("cuda").eval()
        self.stats = stats.to("cuda")

    @torch.inference_mode()
    def get_conditioning_latents(self, audio: torch.Tensor, chunks: list) -> torch.Tensor:
        found = []
        for chunk in chunks:
            found.append(self.encoder(chunk.to("cuda"), self.stats.cpu()))  # expect[low]: AWP108
        return torch.stack(found)
