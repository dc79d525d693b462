"""A decode loop on a CPU, every step the same work: what the studies of ``power.py`` measure.

python program.py --requests 10000 --steps 40 --layers 400 --waste 21 [--device cuda | --library numpy]

The waste is work that nothing comes of: a patch that takes it out gains a known share. With NumPy instead of torch the
program starts in a moment, for series of many processes.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")


class Model:
    """So many matrix products a step."""

    def __init__(self, library: str, device: str, layers: int, waste: int) -> None:
        if library == "numpy":
            import numpy

            self.tanh = numpy.tanh
            self.weight: Any = numpy.random.default_rng(0).standard_normal((256, 256), dtype="float32") / 16
            self.first: Any = numpy.ones((16, 256), dtype="float32")
        else:
            import torch

            torch.set_num_threads(1)
            self.tanh = torch.tanh
            self.weight = torch.randn(256, 256, generator=torch.Generator().manual_seed(0)).to(device) / 16
            self.first = torch.ones(16, 256, device=device)
        self.layers = layers
        self.waste = waste

    def forward(self, x: Any) -> Any:
        """One step."""
        for _ in range(self.layers):
            x = self.tanh(x @ self.weight)
        for _ in range(self.waste):
            self.tanh(x @ self.weight)
        return x


def generate(model: Model, steps: int) -> float:
    """One request."""
    x = model.first
    for _step in range(steps):
        x = model.forward(x)
    return float(x.sum())


def main() -> None:
    """Serve some requests and print what they sum up to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", choices=("torch", "numpy"), default="torch")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--layers", type=int, default=60)
    parser.add_argument("--waste", type=int, default=0)
    args = parser.parse_args()
    model = Model(args.library, args.device, args.layers, args.waste)
    print(sum(generate(model, args.steps) for _ in range(args.requests)))


if __name__ == "__main__":
    main()
