"""Calls that have no form which does not wait, once a call; uploads, which AWP601 tells of; steps that read anyway."""

import torch
import torchvision
from diffusers import DiffusionPipeline, FlowMatchEulerDiscreteScheduler
from torch import nn


class Detector(nn.Module):
    def __init__(self, layers: nn.ModuleList, head: nn.Module):
        super().__init__()
        self.layers = layers
        self.head = head

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states)
            scale = hidden_states.new_tensor([0.5, 1.0])
            hidden_states = hidden_states * scale.mean()
        return self.head(hidden_states)

    @torch.inference_mode()
    def predict(self, images: list, iou: float) -> list:
        found = []
        for image in images:
            found.append(self.suppressed(self(image.cuda()), iou))
        return found

    def suppressed(self, boxes: torch.Tensor, iou: float) -> torch.Tensor:
        kept = torchvision.ops.batched_nms(boxes[:, :4], boxes[:, 4], boxes[:, 5], iou)
        return boxes[kept]


class Frames(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def quaternions(self, rotations: torch.Tensor) -> torch.Tensor:
        _, vectors = torch.linalg.eigh(rotations @ rotations.transpose(-1, -2))
        return vectors[..., -1]

    @torch.inference_mode()
    def forward(self, states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            states = layer(states, self.quaternions(states))
        return states


class AudioPipeline(DiffusionPipeline):
    def __init__(self, transformer: nn.Module, scheduler: FlowMatchEulerDiscreteScheduler):
        super().__init__()
        self.register_modules(transformer=transformer, scheduler=scheduler)

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int, device: str) -> torch.Tensor:
        self.scheduler.set_timesteps(num_inference_steps, device=device)
        for t in self.scheduler.timesteps:
            noise = self.transformer(latents, float(t) / 1000)
            latents = self.scheduler.step(noise, t, latents, return_dict=False)[0]
        return latents
