"""What a file is made of is brought to the host once for each file."""

import torch
from torch import nn


def audio_write(name: str, wave: torch.Tensor) -> None:
    loudness = wave.pow(2).mean().sqrt().item()  # expect[low]: AWP101
    if loudness > 0.0:
        with open(name, "wb") as out:
            out.write((wave / loudness).cpu().numpy().tobytes())  # expect[low]: AWP101


class Speaker(nn.Module):
    def __init__(self, decoder: nn.Module):
        super().__init__()
        self.decoder = decoder

    @torch.inference_mode()
    def synthesize(self, codes: torch.Tensor, folder: str) -> None:
        for i in range(codes.shape[0]):
            stems = self.decoder(codes[i].to("cuda"))
            for number, wave in enumerate(stems):
                audio_write(f"{folder}/{i}-{number}.wav", wave)
