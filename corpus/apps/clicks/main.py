"""Scores made-up requests for their chance of a click.

    python main.py --requests 40 --size cpu
    python main.py --size gpu --batch 16384

Figures of every tenth batch and a checksum of all scores go to standard output, times to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time

import torch

from clickscore.model import SIZES, ClickModel, ModelConfig
from clickscore.report import Report
from clickscore.stream import Batch, Scorer


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small click predictor and its load.")
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--requests", type=int, default=120, help="batches (default %(default)s)")
    parser.add_argument("--batch", type=int, default=512, help="rows in a batch (default %(default)s)")
    parser.add_argument("--threshold", type=float, default=0.55, help="least score worth showing (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on a CPU (default %(default)s)")
    return parser.parse_args()


def make_batch(config: ModelConfig, rows: int, generator: torch.Generator) -> Batch:
    """Features as a feature store would hand them over: on the host. Low ids are asked for more often."""
    dense = torch.randn(rows, config.dense, generator=generator)
    draws = torch.rand(rows, len(config.tables), config.per_bag, generator=generator).pow(4.0)
    return Batch(dense, (draws * torch.tensor(config.tables)[:, None]).long())


def main() -> int:
    args = parse_args()
    if args.size == "gpu" and not args.device and not torch.cuda.is_available():
        print("--size gpu needs a CUDA device; give --device to run it elsewhere", file=sys.stderr)
        return 2
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    config = SIZES[args.size]
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    model = ClickModel(config).to(device, dtype).eval()
    size = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    print(f"model: {size:.1f}M parameters on {device}", file=sys.stderr)
    generator = torch.Generator().manual_seed(args.seed)
    pool = [make_batch(config, args.batch, generator) for _ in range(8)]
    if device.type == "cuda":
        pool = [batch.pinned() for batch in pool]
    batches = [pool[number % len(pool)] for number in range(args.requests)]
    scorer = Scorer(model, device, args.batch)
    report = Report()
    digest = hashlib.sha256()
    start = time.perf_counter()
    for number, scores in enumerate(scorer.run(batches)):
        shown = report.add(scores, args.threshold)
        digest.update(" ".join(map(str, shown)).encode())
        if number % 10 == 0:
            print(f"{number:3d} {len(shown)} shown, best {scores.max().item():.4f}")
    seconds = time.perf_counter() - start
    print(report.line())
    print(f"checksum {digest.hexdigest()[:16]}")
    print(f"{report.rows} rows in {seconds:.2f} s: {report.rows / seconds:.0f} a second", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
