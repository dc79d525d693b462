"""What is asked once a canvas, beside all the denoising steps that each canvas takes."""

import torch
from torch import nn


class TextDiffuser(nn.Module):
    def __init__(self, decoder: nn.Module, max_denoising_steps: int):
        super().__init__()
        self.decoder = decoder
        self.max_denoising_steps = max_denoising_steps

    @torch.no_grad()
    def generate(self, input_ids: torch.Tensor, max_new_canvases: int, eos: torch.Tensor) -> torch.Tensor:
        finished = torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)
        for _ in range(max_new_canvases):
            canvas = torch.randint_like(input_ids, 0, 1000)
            for step in reversed(range(1, self.max_denoising_steps + 1)):
                canvas = self.decoder(input_ids, canvas, step).argmax(-1)
            input_ids = torch.cat([input_ids, canvas], dim=-1)
            finished = finished | torch.isin(canvas, eos).any(-1)
            if torch.all(finished):
                break
        return input_ids
