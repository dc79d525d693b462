"""Samples images of made-up classes.

    python main.py --requests 4 --size cpu
    python main.py --size gpu

Brightness and a checksum of all images go to standard output, figures to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import sys
import time

import torch

from paintserve.sampler import Sampler
from paintserve.unet import SIZES, UNet


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small class-conditional sampler and its load.")
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--requests", type=int, default=24, help="batches of images (default %(default)s)")
    parser.add_argument("--images", type=int, default=4, help="in a batch (default %(default)s)")
    parser.add_argument("--guidance", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on a CPU (default %(default)s)")
    return parser.parse_args()


def build(args: argparse.Namespace, device: torch.device) -> Sampler:
    torch.manual_seed(args.seed)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    config = SIZES[args.size]
    model = UNet(config).to(device=device, dtype=dtype, memory_format=torch.channels_last).eval()
    size = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    print(f"model: {size:.1f}M parameters on {device}, {config.steps} steps", file=sys.stderr)
    return Sampler(model, config, args.images, device, dtype)


def main() -> int:
    args = parse_args()
    if args.size == "gpu" and not args.device and not torch.cuda.is_available():
        print("--size gpu needs a CUDA device; give --device to run it elsewhere", file=sys.stderr)
        return 2
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    torch.set_num_threads(args.threads)
    torch.backends.cudnn.benchmark = True  # all batches have one shape
    sampler = build(args, device)
    source = random.Random(args.seed)
    digest = hashlib.sha256()
    times = []
    moves = 0

    def told(step: object) -> None:
        nonlocal moves
        moves += 1

    for number in range(args.requests):
        labels = [source.randrange(sampler.config.classes) for _ in range(args.images)]
        start = time.perf_counter()
        pixels = sampler.sample(labels, args.guidance, args.seed + number, told)
        times.append(time.perf_counter() - start)
        digest.update(bytes(pixels.flatten().tolist()))
        brightness = pixels.float().mean(dim=(1, 2, 3)).tolist()
        shown = ", ".join(f"{label} {value:.1f}" for label, value in zip(labels, brightness))
        if number % 4 == 0:
            print(f"batch {number}: {shown}")
    print(f"checksum {digest.hexdigest()[:16]}")
    print(f"{moves} steps, median {statistics.median(times) * 1e3:.0f} ms a batch", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
