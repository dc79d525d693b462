"""Indexes made-up notes and answers waves of questions.

    python main.py --requests 40 --size cpu
    python main.py --size gpu

Answers and their checksum go to standard output, figures to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time

import torch

from embedserve.encoder import SIZES, Encoder
from embedserve.service import EmbeddingService

WORDS = (
    "server model batch token cache index query vector search note error retry queue worker user page table file graph "
    "memory device kernel stream launch copy wait read write open close start stop build test deploy fix plan cost"
).split()


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small embedding service and its load.")
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--requests", type=int, default=150, help="waves of questions (default %(default)s)")
    parser.add_argument("--notes", type=int, default=400, help="texts in the index (default %(default)s)")
    parser.add_argument("--compile", action="store_true", help="compile the encoder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on a CPU (default %(default)s)")
    return parser.parse_args()


def sentence(source: random.Random, longest: int) -> str:
    return " ".join(source.choices(WORDS, k=source.randint(3, longest)))


def build(args: argparse.Namespace, device: torch.device) -> EmbeddingService:
    torch.manual_seed(args.seed)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    encoder = Encoder(SIZES[args.size]).to(device, dtype).eval()
    if args.compile:
        encoder.compile(dynamic=True)
    size = sum(parameter.numel() for parameter in encoder.parameters())
    norm = sum(parameter.float().norm().item() for parameter in encoder.parameters())
    print(f"encoder: {size / 1e6:.0f}M parameters on {device}, norm {norm:.3f}", file=sys.stderr)
    return EmbeddingService(encoder, device, budget=2048 if device.type == "cpu" else 65_536)


def main() -> int:
    args = parse_args()
    if args.size == "gpu" and not args.device and not torch.cuda.is_available():
        print("--size gpu needs a CUDA device; give --device to run it elsewhere", file=sys.stderr)
        return 2
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    torch.set_num_threads(args.threads)
    service = build(args, device)
    source = random.Random(args.seed)
    service.add([sentence(source, 60) for _ in range(args.notes)])
    digest = hashlib.sha256()
    start = time.perf_counter()
    asked = 0
    for number in range(args.requests):
        questions = [sentence(source, 12) for _ in range(16)]
        answers = service.search(questions, 5)
        asked += len(questions)
        for hits in answers:
            digest.update("\n".join(hit.text for hit in hits).encode())
        if number % 50 == 0:
            print(f"wave {number}: {answers[0][0].text[:60]}")
    seconds = time.perf_counter() - start
    print(f"checksum {digest.hexdigest()[:16]}")
    print(f"{asked} questions in {seconds:.2f} s: {asked / seconds:.0f} a second", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
