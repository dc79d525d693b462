"""Image classification with a Swin of timm."""

from __future__ import annotations

import timm
import torch
from common import options, serve

given = options(requests=40)
name = "swin_base_patch4_window7_224" if given.size == "gpu" else "swin_tiny_patch4_window7_224"
model = timm.create_model(name, pretrained=False).to(given.device, given.dtype).eval()


@torch.inference_mode()
def answer(number: int) -> torch.Tensor:
    source = torch.Generator().manual_seed(number)
    pictures = torch.rand(given.of(2, 32), 3, 224, 224, generator=source)
    return model(pictures.to(given.device, given.dtype)).softmax(dim=-1).topk(5).values


if __name__ == "__main__":
    serve(given, answer)
