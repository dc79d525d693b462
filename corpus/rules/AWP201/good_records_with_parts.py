"""Prompts of each image: points or boxes, of any number. They make no batch that the model could take."""

import torch
from torch import nn


class Segment(nn.Module):
    def __init__(self, prompt_encoder: nn.Module, mask_decoder: nn.Module):
        super().__init__()
        self.prompt_encoder = prompt_encoder
        self.mask_decoder = mask_decoder

    def forward(self, images: torch.Tensor, prompts: list[dict]) -> list:
        outputs = []
        for record, image in zip(prompts, images):  # expect[low]: AWP201
            found = self.prompt_encoder(points=record.get("points"), boxes=record.get("boxes", None))
            outputs.append(self.mask_decoder(image[None], found))
        return outputs
