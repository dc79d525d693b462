"""TensorFloat-32 switched off in a service, in both spellings, and a product cast to float32 in a decode loop."""

import torch
from torch import nn

torch.backends.cuda.matmul.allow_tf32 = True
torch.set_float32_matmul_precision("high")

model = nn.Linear(512, 512).to("cuda").eval()


@torch.inference_mode()
def denoise(latents: torch.Tensor, keys: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
    latents = latents.to("cuda")
    keys = keys.to("cuda")
    for _ in range(num_inference_steps):
        mixed = torch.matmul(latents.float(), keys.float().transpose(-1, -2))
        latents = model(mixed.to(latents.dtype))
    return latents
