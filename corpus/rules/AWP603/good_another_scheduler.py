"""What a pipeline does for another scheduler than the one it declares."""

import torch
from diffusers import DiffusionPipeline


class OwnScheduler:
    timesteps: torch.Tensor


class DecoderPipeline(DiffusionPipeline):
    def __init__(self, decoder, scheduler: OwnScheduler):
        self.register_modules(decoder=decoder, scheduler=scheduler)

    def ratio(self, t: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        shift = torch.tensor([0.008])
        shift = shift.to(table.device)
        return table[t] * (1 + shift)

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        for t in self.scheduler.timesteps:
            if not isinstance(self.scheduler, OwnScheduler):
                ratio = self.ratio(t, table)
            else:
                ratio = t.expand(latents.size(0))
            latents = self.decoder(latents, ratio)
        return latents
