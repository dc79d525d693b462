"""The prompts of a diffusion pipeline: one or two in front of all its steps."""

import torch
from diffusers import DiffusionPipeline
from torch import nn
from transformers import AutoTokenizer


class ImagePipeline(DiffusionPipeline):
    def __init__(self, text_encoder: nn.Module, transformer: nn.Module):
        super().__init__()
        self.tokenizer = AutoTokenizer.from_pretrained("prompt")
        self.register_modules(text_encoder=text_encoder, transformer=transformer)

    def encode_prompt(self, prompt: list, device: str) -> torch.Tensor:
        found = []
        for text in prompt:  # expect[low]: AWP202
            ids = self.tokenizer(text, return_tensors="pt").input_ids.to(device)
            found.append(self.text_encoder(ids).last_hidden_state)
        return torch.cat(found)

    @torch.no_grad()
    def __call__(self, prompt: list, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        embeds = self.encode_prompt(prompt, "cuda")
        for _ in range(num_inference_steps):
            latents = latents - 0.1 * self.transformer(latents, embeds)
        return latents
