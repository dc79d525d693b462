"""A decode loop with steps of some 25 ms on a CPU: what the studies of ``power.py`` measure.

python program.py --requests 10000 --steps 40 --unit-ms 25
"""

from __future__ import annotations

import argparse
import time

import torch


class Model:
    """Matrix products on the CPU until a step takes about as long as was asked for."""

    def __init__(self, unit_ms: float) -> None:
        torch.set_num_threads(1)
        generator = torch.Generator().manual_seed(0)
        self.weight = torch.randn(256, 256, generator=generator) / 16
        self.layers = 10
        began = time.perf_counter()
        for _ in range(3):
            self.forward(torch.ones(16, 256))
        took = (time.perf_counter() - began) / 3 * 1e3
        self.layers = max(1, round(10 * unit_ms / took))

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
    parser.add_argument("--unit-ms", type=float, default=25.0)
    args = parser.parse_args()
    model = Model(args.unit_ms)
    print(sum(generate(model, args.steps) for _ in range(args.requests)))


if __name__ == "__main__":
    main()
