"""Asks questions on made-up pictures.

    python main.py --requests 4 --size cpu
    python main.py --size gpu

Answers and their checksum go to standard output, figures to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import sys
import time
from collections import Counter

import torch

from visionprefill.assistant import Assistant, Question
from visionprefill.config import PATCH, SIZES

TEXTS = ("What is this?", "Which colour is the largest part?", "How many things are there?", "Is it day or night?")


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Questions on pictures, and their load.")
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--requests", type=int, default=30, help="batches (default %(default)s)")
    parser.add_argument("--batch", type=int, default=4, help="questions in a batch (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on a CPU (default %(default)s)")
    return parser.parse_args()


def picture(sides: tuple[int, ...], source: random.Random, generator: torch.Generator) -> torch.Tensor:
    """Coloured blocks with noise, as read from a file: uint8 on the host."""
    height, width = source.choice(sides), source.choice(sides)
    colours = torch.randint(0, 200, (3, 4, 4), generator=generator).float()
    blocks = torch.nn.functional.interpolate(colours[None], size=(height, width), mode="nearest")[0]
    noise = torch.randint(0, 56, (3, height, width), generator=generator)
    return (blocks + noise).to(torch.uint8)


def main() -> int:
    args = parse_args()
    if args.size == "gpu" and not args.device and not torch.cuda.is_available():
        print("--size gpu needs a CUDA device; give --device to run it elsewhere", file=sys.stderr)
        return 2
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    torch.set_num_threads(args.threads)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    torch.manual_seed(args.seed)
    config = SIZES[args.size]
    assistant = Assistant(config).to(device, dtype).eval()
    size = sum(parameter.numel() for parameter in assistant.parameters()) / 1e6
    print(f"assistant: {size:.1f}M parameters on {device}, patches of {PATCH} pixels", file=sys.stderr)
    source = random.Random(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    waves = [
        [
            Question(picture(config.sides, source, generator), source.choice(TEXTS), source.randint(3, 6))
            for _ in range(args.batch)
        ]
        for _ in range(args.requests)
    ]
    digest = hashlib.sha256()
    chosen: Counter[str] = Counter()
    times = []
    for number, questions in enumerate(waves):
        start = time.perf_counter()
        verdicts = assistant.answer(questions)
        times.append(time.perf_counter() - start)
        chosen.update(verdict.option for verdict in verdicts)
        for verdict in verdicts:
            digest.update(f"{verdict.option} {verdict.chance:.3f} {verdict.margin:.3f}".encode())
        if number % 10 == 0:
            print(f"wave {number}: " + ", ".join(f"{verdict.option} {verdict.chance:.3f}" for verdict in verdicts))
    print(f"checksum {digest.hexdigest()[:16]}")
    print(f"median {statistics.median(times) * 1e3:.0f} ms a batch; {dict(sorted(chosen.items()))}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
