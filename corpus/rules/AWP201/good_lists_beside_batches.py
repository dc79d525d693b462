"""Lists of images of several sizes go through one by one, a batch whole: callers choose."""

import torch
from torch import nn


class Upscaler(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    @torch.inference_mode()
    def predict(self, images: torch.Tensor | list[torch.Tensor]) -> torch.Tensor | list[torch.Tensor]:
        if isinstance(images, list):
            return [self.model(image[None])[0] for image in images]  # expect[low]: AWP201
        else:
            return self.model(images)
