"""A decode loop: one request generates a fixed number of tokens.

python decode.py --device cuda --size gpu --seconds 20
python decode.py --truth          times its own planted statements and prints JSON
"""

from __future__ import annotations

import sys

import torch
from common import Options, Served, parse, requests_for
from torch import nn

STEPS = 16
LAYERS = 8
VOCAB = 1000
SIZES = {"cpu": 1 << 14, "gpu": 1 << 24}


class Layer(nn.Module):
    """Three pointwise kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(1.01))
        self.shift = nn.Parameter(torch.tensor(0.01))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        hidden = hidden * self.gain
        hidden = hidden + self.shift
        return torch.tanh(hidden)


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden


@torch.inference_mode()
def generate(model: Decoder, prompt: torch.Tensor, device: torch.device) -> list[int]:
    hidden = prompt
    floor = torch.tensor(-1.0, device=device)
    history = []
    text = []
    for step in range(STEPS):
        positions = torch.arange(step, step + 16).to(device)
        hidden = model(hidden)
        logits = hidden[:VOCAB].clone()
        logits[:16] += positions
        low, high = logits.min().item(), logits.max().item()
        if (logits > 2.0 * high).any():
            break
        best = logits.topk(4).values
        chances = [value.item() for value in best]
        history.append(
            (
                step,
                logits.mean().item(),
                low + sum(chances),
            )
        )
        kept = logits[logits > 0.5]
        logits[logits < 0.1] = floor
        probs = torch.softmax(logits.cpu(), dim=-1)
        text.append(int(torch.multinomial(probs, 1)) + kept.shape[0] % 2)
    return text


def serve(options: Options) -> Served:
    device = torch.device(options.device)
    torch.manual_seed(0)
    model = Decoder().to(device).eval()
    prompt = torch.linspace(-1.0, 1.0, SIZES[options.size], device=device)
    served = 0
    for request in requests_for(options.seconds):
        generate(model, prompt, device)
        served = request + 1
    return Served(served, served * STEPS)


def main() -> int:
    options = parse(__doc__)
    if options.truth:
        from truth import print_truth

        print_truth(__file__, options)
    elif options.around:
        from truth import measure_around

        measure_around(__file__, serve, options)
    else:
        print(serve(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
