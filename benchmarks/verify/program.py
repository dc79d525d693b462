"""A decode loop on a CPU, every step the same work: what the studies of ``power.py`` measure.

python program.py --requests 10000 --steps 40 --layers 60
"""

from __future__ import annotations

import argparse

import torch


class Model:
    """So many matrix products on the CPU a step."""

    def __init__(self, layers: int) -> None:
        torch.set_num_threads(1)
        self.weight = torch.randn(256, 256, generator=torch.Generator().manual_seed(0)) / 16
        self.layers = layers

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One step."""
        for _ in range(self.layers):
            x = torch.tanh(x @ self.weight)
        return x


def generate(model: Model, steps: int) -> float:
    """One request."""
    x = torch.ones(16, 256)
    for _step in range(steps):
        x = model.forward(x)
    return float(x.sum())


def main() -> None:
    """Serve some requests and print what they sum up to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--layers", type=int, default=60)
    args = parser.parse_args()
    model = Model(args.layers)
    print(sum(generate(model, args.steps) for _ in range(args.requests)))


if __name__ == "__main__":
    main()
