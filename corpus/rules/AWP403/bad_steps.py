"""Loops that hand numbers and growing tensors to code that records a graph, or is compiled, for each."""

import torch
from torch import nn


class Sampler:
    def __init__(self, unet: nn.Module, decoder: nn.Module):
        self.unet = torch.compile(unet, mode="reduce-overhead")
        self.decoder = torch.compile(decoder, dynamic=False)

    @torch.inference_mode()
    def infer(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        for step in range(num_inference_steps):
            noise = self.unet(latents, step)  # expect: AWP403
            latents = latents - noise * 0.05
        return latents

    @torch.inference_mode()
    def generate(self, tokens: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        for _ in range(max_new_tokens):
            logits = self.decoder(tokens)  # expect: AWP403
            tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
        return tokens
