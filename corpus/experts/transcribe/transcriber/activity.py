"""Where somebody speaks: energy of short frames, with a hangover."""

from __future__ import annotations

from dataclasses import dataclass

import torch

FRAME = 400


@dataclass(frozen=True)
class Segment:
    """A stretch of speech, in samples."""

    start: int
    end: int


def speech_segments(samples: torch.Tensor, threshold: float, hangover: int = 4) -> list[Segment]:
    """Stretches louder than ``threshold`` times the mean energy, joined over short pauses."""
    frames = samples[: samples.shape[0] // FRAME * FRAME].view(-1, FRAME)
    energy = frames.square().mean(dim=1)
    loud = (energy > energy.mean() * threshold).tolist()
    segments: list[Segment] = []
    start = -1
    quiet = 0
    for index in range(len(loud)):
        if loud[index]:
            if start < 0:
                start = index
            quiet = 0
        elif start >= 0:
            quiet += 1
            if quiet > hangover:
                segments.append(Segment(start * FRAME, (index - quiet + 1) * FRAME))
                start, quiet = -1, 0
    if start >= 0:
        segments.append(Segment(start * FRAME, len(loud) * FRAME))
    return segments


def longest(segments: list[Segment]) -> int:
    return max((segment.end - segment.start for segment in segments), default=0)
