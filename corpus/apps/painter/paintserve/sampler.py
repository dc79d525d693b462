"""The sampler. All tensors of a step are made once; a step writes in place, so that it can be replayed as a graph."""

from __future__ import annotations

from collections.abc import Callable

import torch

from paintserve.schedule import Step, schedule
from paintserve.unet import ModelConfig, UNet


class Sampler:
    def __init__(self, model: UNet, config: ModelConfig, rows: int, device: torch.device, dtype: torch.dtype) -> None:
        self.model = model
        self.config = config
        self.device = device
        self.rows = rows
        self.steps = schedule(config.steps)
        # one row a step: level change, input scale, label; a step takes its row by a copy on the device
        numbers = [[step.change, step.input_scale, step.label] for step in self.steps]
        self.table = torch.tensor(numbers, device=device)
        self.current = torch.zeros(3, device=device)
        self.images = torch.zeros(rows, 3, config.side, config.side, device=device, dtype=torch.float32)
        self.labels = torch.zeros(2 * rows, device=device, dtype=torch.long)
        self.guidance = torch.zeros((), device=device)
        self.dtype = dtype
        self.advance: Callable[[], None] = self.step
        if device.type == "cuda":
            self.advance = self.capture()

    def step(self) -> None:
        """Both halves of the guidance in one forward pass, then one move along the direction found."""
        change, scale, label = self.current.unbind(0)
        x = (self.images * scale).to(self.dtype).repeat(2, 1, 1, 1)
        noise = self.model(x, label.expand(2 * self.rows), self.labels).float()
        wanted, plain = noise.chunk(2)
        self.images.add_((plain + self.guidance * (wanted - plain)) * change)

    def capture(self) -> Callable[[], None]:
        """Record one step as a graph, after a few that warm the libraries up."""
        stream = torch.cuda.Stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.inference_mode(), torch.cuda.stream(stream):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream(self.device).wait_stream(stream)
        torch.cuda.synchronize(self.device)
        graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), torch.cuda.graph(graph):
            self.step()
        return graph.replay

    def noise(self, seed: int) -> torch.Tensor:
        """Drawn on the host, so that a seed gives the same images on every device."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(self.images.shape, generator=generator)

    @torch.inference_mode()
    def sample(self, labels: list[int], guidance: float, seed: int, told: Callable[[Step], None]) -> torch.Tensor:
        """Images (rows, 3, side, side) in uint8 on the host. Raises FloatingPointError if the model diverged."""
        if len(labels) != self.rows:
            raise ValueError(f"{len(labels)} labels for {self.rows} rows")
        self.labels.copy_(torch.tensor(labels + [self.config.classes] * self.rows))
        self.guidance.fill_(guidance)
        self.images.copy_(self.noise(seed) * self.steps[0].level)
        for number, step in enumerate(self.steps):
            self.current.copy_(self.table[number])
            self.advance()
            told(step)
        pixels = (self.images.clamp(-1.0, 1.0) * 127.5 + 127.5).round().to(torch.uint8).cpu()
        if not torch.isfinite(self.images).all():
            raise FloatingPointError(f"seed {seed} gave no image")
        return pixels
