"""Modules counted once, walks that change what they find, and a look at the first parameter."""

import torch
from torch import nn


class CausalConv(nn.Conv3d):
    pass


class VideoDecoder(nn.Module):
    def __init__(self, decoder: nn.Module, encoder: nn.Module):
        super().__init__()
        self.decoder = decoder
        self.encoder = encoder
        self.convs = sum(isinstance(m, CausalConv) for m in self.decoder.modules())

    def clear_cache(self) -> None:
        self.cache = [None] * self.convs

    def reset_state(self) -> None:
        for module in self.decoder.modules():
            module.state = None

    def enable_slicing(self) -> None:
        for module in self.encoder.modules():
            if isinstance(module, CausalConv):
                module.slicing = True

    @torch.inference_mode()
    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        self.clear_cache()
        self.reset_state()
        latents = latents.to(next(self.decoder.parameters()).dtype)
        return self.decoder(latents)
