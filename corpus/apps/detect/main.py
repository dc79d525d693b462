"""Finds things in made-up pictures: rectangles and discs of random colours on noise.

    python main.py --requests 4 --size cpu
    python main.py --size gpu

What was found and its checksum go to standard output, figures to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import sys
import time

import torch

from detectserve.model import SIZES, Detector
from detectserve.postprocess import Limits
from detectserve.service import DetectionService


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small instance segmentation service and its load.")
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--requests", type=int, default=6, help="batches of pictures (default %(default)s)")
    parser.add_argument("--batch", type=int, default=4, help="pictures in a batch (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on a CPU (default %(default)s)")
    return parser.parse_args()


def picture(side: int, generator: torch.Generator) -> torch.Tensor:
    """A picture (3, side, side) in uint8 on the host."""
    canvas = torch.randint(0, 60, (3, side, side), generator=generator)
    rows = torch.arange(side)[:, None]
    columns = torch.arange(side)[None, :]
    for number in range(6):
        colour = torch.randint(60, 256, (3, 1), generator=generator)
        left, top, size = torch.randint(side // 8, side // 2, (3,), generator=generator).tolist()
        if number % 2:
            inside = (rows - top).square() + (columns - left).square() < (size // 2) ** 2
        else:
            inside = (rows >= top) & (rows < top + size) & (columns >= left) & (columns < left + size)
        canvas[:, inside] = colour
    return canvas.to(torch.uint8)


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
    model = Detector(config).to(device, dtype).eval()
    size = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    print(f"detector: {size:.1f}M parameters on {device}", file=sys.stderr)
    service = DetectionService(model, device, dtype, Limits())
    generator = torch.Generator().manual_seed(args.seed)
    batches = [[picture(config.image, generator) for _ in range(args.batch)] for _ in range(args.requests)]
    digest = hashlib.sha256()
    times = []
    for number, pictures in enumerate(batches):
        start = time.perf_counter()
        found = service.detect(pictures)
        times.append(time.perf_counter() - start)
        for records in found:
            for record in records:
                box = " ".join(f"{edge:.0f}" for edge in record.box)
                digest.update(f"{record.label} {record.score:.3f} {box} {record.pixels}".encode())
        best = max((record.score for records in found for record in records), default=0.0)
        print(f"{number:3d} {sum(map(len, found)):3d} instances, best score {best:.3f}")
    print(f"checksum {digest.hexdigest()[:16]}")
    common = ", ".join(f"class {label}: {count}" for label, count in service.seen.most_common(3))
    print(f"median {statistics.median(times) * 1e3:.0f} ms a batch; {common}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
