"""What a function inside makes of a table on the host stays on the host."""

import torch


class Scheduler:
    def __init__(self, sigmas: torch.Tensor):
        self.sigmas = sigmas.to("cpu")

    def step(self, model_output: torch.Tensor, index: int, sample: torch.Tensor) -> torch.Tensor:
        def time_of(sigma: torch.Tensor) -> torch.Tensor:
            return sigma.log().neg()

        sigma, following = time_of(self.sigmas[index]), time_of(self.sigmas[index + 1])
        up = min(following, (following**2 * (sigma**2 - following**2) / sigma**2) ** 0.5)
        return sample - model_output * up


class Pipeline:
    def __init__(self, unet, scheduler: Scheduler):
        self.unet = unet
        self.scheduler = scheduler

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        for index in range(num_inference_steps):
            latents = self.scheduler.step(self.unet(latents, index), index, latents)
        return latents
