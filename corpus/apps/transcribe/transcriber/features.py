"""From samples to log-mel frames."""

from __future__ import annotations

import math

import torch

RATE = 16_000
WINDOW = 400
HOP = 160
BANDS = 80


def mel_filters(bands: int, bins: int) -> torch.Tensor:
    """Triangular filters (bins, bands) on the mel scale."""
    top = 2595.0 * math.log10(1.0 + RATE / 2 / 700.0)
    edges = 700.0 * (10.0 ** (torch.linspace(0.0, top, bands + 2) / 2595.0) - 1.0)
    frequencies = torch.linspace(0.0, RATE / 2, bins)[:, None]
    rising = (frequencies - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - frequencies) / (edges[2:] - edges[1:-1])
    return torch.minimum(rising, falling).clamp(min=0.0)


def log_mel(samples: torch.Tensor) -> torch.Tensor:
    """Log-mel frames (frames, bands) of one stretch of sound (samples,)."""
    window = torch.hann_window(WINDOW).to(samples.device)
    spectrum = torch.stft(samples, WINDOW, HOP, window=window, return_complex=True)
    power = spectrum.abs().square().transpose(0, 1)
    filters = mel_filters(BANDS, power.shape[1]).to(samples.device)
    return torch.log10((power @ filters).clamp(min=1e-10))


def normalise(frames: torch.Tensor) -> torch.Tensor:
    """Zero mean, and unit variance unless the stretch is silent."""
    spread = frames.std()
    if spread < 1e-5:
        return frames - frames.mean()
    return (frames - frames.mean()) / spread
