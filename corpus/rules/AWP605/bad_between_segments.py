"""Memory given back behind each segment of a request, by a helper."""

import gc

import torch
from fastapi import FastAPI
from torch import nn

app = FastAPI()


def release() -> None:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()  # expect: AWP605
    gc.collect()  # expect: AWP605


class Speech:
    def __init__(self, talker: nn.Module, vocoder: nn.Module):
        self.talker = talker.cuda().eval()
        self.vocoder = vocoder.cuda().eval()

    def speak(self, segments: list):
        for segment in segments:
            yield self.spoken(segment)

    @torch.inference_mode()
    def spoken(self, segment: torch.Tensor) -> torch.Tensor:
        wave = self.vocoder(self.talker(segment.cuda()))
        release()
        return wave


speech = Speech(nn.Identity(), nn.Identity())


@app.post("/speak")
def speak(request: dict):
    return list(speech.speak(request["segments"]))
