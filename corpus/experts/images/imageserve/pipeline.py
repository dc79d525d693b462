"""The pipeline: prompts, noise, the denoising loop, pixels."""

from __future__ import annotations

from collections.abc import Callable

import torch

from captured import Captured
from imageserve.config import Job, Sizes
from imageserve.decoder import Decoder, decode
from imageserve.scheduler import EulerScheduler
from imageserve.text import TextEncoder, encode_prompts
from imageserve.transformer import DiffusionTransformer

LATE = 150.0  # below this time step guidance only adds artefacts


class Pipeline:
    def __init__(self, sizes: Sizes, device: torch.device, dtype: torch.dtype, seed: int) -> None:
        torch.manual_seed(seed)
        self.sizes = sizes
        self.device = device
        self.dtype = dtype
        self.encoder = TextEncoder(sizes).to(device, dtype).eval()
        self.transformer = DiffusionTransformer(sizes).to(device, dtype).eval()
        self.decoder = Decoder(sizes).to(device, dtype).eval()
        self.denoise = Captured(self.transformer)
        self.scheduler = EulerScheduler(sizes.steps, device)

    def initial(self, job: Job) -> torch.Tensor:
        """Noise drawn on the host, so that a seed gives the same image on every device."""
        generator = torch.Generator().manual_seed(job.seed)
        shape = (len(job.prompts), self.sizes.channels, self.sizes.side, self.sizes.side)
        return torch.randn(shape, generator=generator).to(self.device, self.dtype) * 14.0

    @torch.inference_mode()
    def __call__(self, job: Job, progress: Callable[[int, int], None] | None = None) -> torch.Tensor:
        """Pixels (prompts, 3, height, width) in 0 … 255 as uint8, on the device."""
        count = len(job.prompts)
        both, hidden = encode_prompts(self.encoder, [*job.prompts, *[job.negative] * count], self.device)
        scheduler = self.scheduler
        latents = self.initial(job)
        for number, time in enumerate(scheduler.times):
            model_input = scheduler.scale(latents, number)
            timestep = scheduler.timesteps[number]
            if job.guidance > 1.0 and time > LATE:  # both halves of the guidance in one batch
                noise, plain = self.denoise((model_input.repeat(2, 1, 1, 1), timestep, both, hidden)).chunk(2)
                noise = self.guide(noise, plain, job)
            else:
                noise = self.denoise((model_input, timestep, both[:count], hidden[:count]))
            latents = scheduler.step(noise, number, latents)
            if progress is not None:
                progress(number + 1, len(scheduler.times))
        if torch.isnan(latents).any():  # what is no number stays none: asked once
            raise FloatingPointError(f"job {job.number}: not a number")
        pixels = decode(self.decoder, latents)
        return (pixels * 255.0).round().to(torch.uint8)

    def guide(self, noise: torch.Tensor, plain: torch.Tensor, job: Job) -> torch.Tensor:
        """Classifier-free guidance, held back where it makes the noise larger than it was."""
        guided = plain + job.guidance * (noise - plain)
        if job.rescale > 0.0:
            before = torch.linalg.vector_norm(noise)
            after = torch.linalg.vector_norm(guided)
            limited = job.rescale * (guided * (before / after)) + (1.0 - job.rescale) * guided
            guided = torch.where(after > before, limited, guided)
        return guided
