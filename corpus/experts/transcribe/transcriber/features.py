"""From samples to log-mel frames."""

from __future__ import annotations

import math
from functools import cache

import torch

RATE = 16_000
WINDOW = 400
HOP = 160
BANDS = 80


@cache
def window_of(device: torch.device) -> torch.Tensor:
    return torch.hann_window(WINDOW).to(device)


@cache
def mel_filters(bands: int, bins: int, device: torch.device) -> torch.Tensor:
    """Triangular filters (bins, bands) on the mel scale, made once a device."""
    top = 2595.0 * math.log10(1.0 + RATE / 2 / 700.0)
    edges = 700.0 * (10.0 ** (torch.linspace(0.0, top, bands + 2) / 2595.0) - 1.0)
    frequencies = torch.linspace(0.0, RATE / 2, bins)[:, None]
    rising = (frequencies - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - frequencies) / (edges[2:] - edges[1:-1])
    return torch.minimum(rising, falling).clamp(min=0.0).to(device)


def log_mel(samples: torch.Tensor) -> torch.Tensor:
    """Log-mel frames (frames, bands) of one stretch of sound (samples,)."""
    spectrum = torch.stft(samples, WINDOW, HOP, window=window_of(samples.device), return_complex=True)
    power = spectrum.abs().square().transpose(0, 1)
    return torch.log10((power @ mel_filters(BANDS, power.shape[1], samples.device)).clamp(min=1e-10))


def normalise(frames: torch.Tensor) -> torch.Tensor:
    """Zero mean, and unit variance unless the stretch is silent."""
    spread = frames.std()
    return (frames - frames.mean()) / torch.where(spread < 1e-5, 1.0, spread)
