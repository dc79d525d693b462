"""Outputs that grow by a copy of everything so far."""

import torch
import torch.nn.functional as F
from torch import nn


@torch.inference_mode()
def generate(model: nn.Module, input_ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    tokens = input_ids.to("cuda")
    mask = torch.ones_like(tokens)
    cache = None
    scores = []
    for _ in range(max_new_tokens):
        logits, cache = model(tokens[:, -1:], mask, cache)
        picked = logits[:, -1:].argmax(-1)
        tokens = torch.cat([tokens, picked], dim=1)  # expect[low]: AWP309
        mask = torch.cat((mask, torch.ones_like(picked)), dim=-1)  # a part of AWP407: it goes into the model
        scores.append(logits[:, -1])
        history = torch.stack(scores, dim=1)  # expect[low]: AWP309
        if history.shape[1] > 8 and mask.shape[1] > 4096:
            break
    return tokens


class Sampler:
    def __init__(self, decoder: nn.Module):
        self.decoder = decoder

    @torch.no_grad()
    def generate(self, frames: torch.Tensor, num_frames: int) -> torch.Tensor:
        frames = frames.cuda()
        padded = torch.zeros(1, 4, device="cuda")
        for index in range(num_frames):
            frame = self.decoder(frames[:, -4:], index)
            frames = torch.hstack([frames, frame])  # expect[low]: AWP309
            padded = F.pad(padded, (0, 1))  # expect[low]: AWP309
            padded[:, -1] = frame.mean()
        return frames
