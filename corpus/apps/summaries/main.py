"""Summarises a folder's worth of made-up documents.

    python main.py --requests 8 --size cpu
    python main.py --size gpu

Summaries (nonsense, since the weights are random) and their checksum go to standard output, figures to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time

import torch

from summarise.model import SIZES, Summariser
from summarise.pipeline import Pipeline

WORDS = (
    "report meeting budget team plan result risk customer market price demand supply growth quarter year office train "
    "river bridge school teacher student exam city council vote law court judge health doctor nurse hospital season"
).split()


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Summaries in bulk.")
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--requests", type=int, default=12, help="documents (default %(default)s)")
    parser.add_argument("--batch", type=int, default=8, help="pieces summarised together (default %(default)s)")
    parser.add_argument("--max-tokens", type=int, default=32, help="longest summary (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on a CPU (default %(default)s)")
    return parser.parse_args()


def document(source: random.Random, size: int) -> str:
    """Anything from a note to several pieces."""
    return " ".join(source.choices(WORDS, k=source.randint(size // 8, 3 * size)))


def main() -> int:
    args = parse_args()
    if args.size == "gpu" and not args.device and not torch.cuda.is_available():
        print("--size gpu needs a CUDA device; give --device to run it elsewhere", file=sys.stderr)
        return 2
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    config = SIZES[args.size]
    model = Summariser(config).to(device, dtype).eval()
    size = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    print(f"summariser: {size:.1f}M parameters on {device}", file=sys.stderr)
    source = random.Random(args.seed)
    documents = [document(source, config.max_input) for _ in range(args.requests)]
    pipeline = Pipeline(model, device, args.batch, args.max_tokens)
    start = time.perf_counter()
    summaries = pipeline.summarise(documents)
    seconds = time.perf_counter() - start
    digest = hashlib.sha256()
    for number, summary in enumerate(summaries):
        digest.update(summary.encode())
        print(f"{number:3d} {len(documents[number].split()):4d} words: {summary[:60]}")
    print(f"checksum {digest.hexdigest()[:16]}")
    print(f"{len(documents)} documents in {seconds:.2f} s, {pipeline.steps} steps", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
