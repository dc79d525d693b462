"""Paints a number of pictures with the image service and stops.

    python main.py --requests 8 --size cpu
    python main.py --size gpu --out pictures

What was painted and its checksum go to standard output, figures to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import statistics
import sys
import time
from pathlib import Path

import torch

from imageserve.config import SIZES, Job
from imageserve.pipeline import Pipeline
from imageserve.worker import Picture, Worker

PROMPTS = (
    "a lighthouse at dusk",
    "two cats on a sofa",
    "a map of an island",
    "rain on a tin roof",
    "a red bicycle",
    "an old steam engine in the snow",
)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small text-to-image service and its load.")
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--requests", type=int, default=24, help="jobs (default %(default)s)")
    parser.add_argument("--images", type=int, default=2, help="pictures a job (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on a CPU (default %(default)s)")
    parser.add_argument("--out", type=Path, help="folder for the pictures (default: they are thrown away)")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def jobs(requests: int, images: int, seed: int) -> list[Job]:
    made = []
    for number in range(requests):
        prompts = tuple(PROMPTS[(number + offset) % len(PROMPTS)] for offset in range(images))
        made.append(Job(number, prompts, negative="blurred" if number % 2 else "", seed=seed + number))
    return made


def warm_up(pipeline: Pipeline) -> float:
    """One job before the clock starts, so that no request pays for loading kernels; returns its milliseconds."""
    start = time.perf_counter()
    pipeline(Job(-1, (PROMPTS[0],)))
    if pipeline.device.type == "cuda":
        torch.cuda.synchronize(pipeline.device)
    return (time.perf_counter() - start) * 1e3


def save(pictures: list[Picture], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for index, picture in enumerate(pictures):
        (folder / f"{picture.job:03d}-{index}.ppm").write_bytes(picture.data)


def main() -> int:
    args = parse_args()
    logging.basicConfig(level=logging.INFO if args.verbose else logging.WARNING)
    if args.size == "gpu" and not args.device and not torch.cuda.is_available():
        print("--size gpu needs a CUDA device; give --device to run it elsewhere", file=sys.stderr)
        return 2
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    torch.set_num_threads(args.threads)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    pipeline = Pipeline(SIZES[args.size], device, dtype, args.seed)
    print(f"warm-up: {warm_up(pipeline):.0f} ms", file=sys.stderr)
    worker = Worker(pipeline)
    worker.start()
    start = time.perf_counter()
    futures = [worker.submit(job) for job in jobs(args.requests, args.images, args.seed)]
    digest = hashlib.sha256()
    times = []
    for future in futures:
        pictures = future.result()
        for picture in pictures:
            digest.update(picture.data)
            print(f"job {picture.job}: {len(picture.data)} bytes, brightness {picture.brightness:.3f}")
        times.append(pictures[0].seconds)
        if args.out:
            save(pictures, args.out)
    seconds = time.perf_counter() - start
    worker.stop()
    print(f"checksum {digest.hexdigest()[:16]}")
    print(
        f"{len(times) * args.images} pictures in {seconds:.2f} s, median {statistics.median(times) * 1e3:.0f} ms a job",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
