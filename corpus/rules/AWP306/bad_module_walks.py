"""Modules of a model counted anew for every request."""

import torch
from torch import nn


class CausalConv(nn.Conv3d):
    pass


class VideoDecoder(nn.Module):
    def __init__(self, decoder: nn.Module, encoder: nn.Module):
        super().__init__()
        self.decoder = decoder
        self.encoder = encoder

    def clear_cache(self) -> None:
        def count_convs(model: nn.Module) -> int:
            count = 0
            for m in model.modules():
                if isinstance(m, CausalConv):
                    count += 1
            return count

        self.cache = [None] * count_convs(self.decoder)  # expect: AWP306
        self.encoder_cache = [None] * sum(isinstance(m, CausalConv) for m in self.encoder.modules())  # expect: AWP306

    @torch.inference_mode()
    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        self.clear_cache()
        return self.decoder(latents)
