"""A prompt encoded once a request, in front of all the steps."""

import torch
from torch import nn


class Pipeline:
    def __init__(self, text_encoder: nn.Module, unet: nn.Module):
        self.text_encoder = text_encoder
        self.unet = unet

    @torch.inference_mode()
    def __call__(self, ids: torch.Tensor, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        embeds = self.text_encoder(ids, output_attentions=True).last_hidden_state  # expect[low]: AWP505
        for _ in range(num_inference_steps):
            latents = latents - 0.1 * self.unet(latents, embeds)
        return latents
