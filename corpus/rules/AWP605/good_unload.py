"""After unloading, in error handlers, in set-up, once in a while; other methods called collect."""

import gc

import torch


class Pool:
    def __init__(self):
        self.models = {}
        gc.collect()

    def unload(self, name: str) -> None:
        del self.models[name]
        gc.collect()
        torch.cuda.empty_cache()


class Pipeline:
    def __init__(self, unet: torch.nn.Module, metrics):
        self.unet = unet
        self.metrics = metrics

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        for step in range(num_inference_steps):
            try:
                latents = self.unet(latents, step)
            except torch.cuda.OutOfMemoryError:
                torch.cuda.empty_cache()
                latents = self.unet(latents.half(), step)
            if step % 100 == 0:
                torch.cuda.empty_cache()
            self.metrics.collect()
        return latents
