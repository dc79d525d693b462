"""Channels last already."""

import torch
import torchvision.models as models

resnet = models.resnet50(weights="DEFAULT").eval().half().cuda().to(memory_format=torch.channels_last)


@torch.inference_mode()
def predict(images: torch.Tensor) -> torch.Tensor:
    return resnet(images.cuda().half().to(memory_format=torch.channels_last))
