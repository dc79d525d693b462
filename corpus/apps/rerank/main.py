"""Reranks made-up search results.

    python main.py --requests 6 --size cpu
    python main.py --size gpu

Rankings and their checksum go to standard output, figures to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time

import torch

from latescore.encoder import SIZES, TokenEncoder
from latescore.reranker import Reranker

WORDS = (
    "how to install configure remove server driver printer network cable password account email folder backup restore "
    "error code screen keyboard battery charge update version license key support phone order refund delivery address"
).split()


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small late-interaction reranker and its load.")
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--requests", type=int, default=20, help="questions (default %(default)s)")
    parser.add_argument("--passages", type=int, default=48, help="to rank for each (default %(default)s)")
    parser.add_argument("--batch", type=int, default=16, help="passages encoded together (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on a CPU (default %(default)s)")
    return parser.parse_args()


def sentence(source: random.Random, shortest: int, longest: int) -> str:
    words = source.choices(WORDS, k=source.randint(shortest, longest))
    return " ".join(word + source.choice(("", "", "", ",", ".")) for word in words)


def main() -> int:
    args = parse_args()
    if args.size == "gpu" and not args.device and not torch.cuda.is_available():
        print("--size gpu needs a CUDA device; give --device to run it elsewhere", file=sys.stderr)
        return 2
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    torch.set_num_threads(args.threads)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    torch.manual_seed(args.seed)
    encoder = TokenEncoder(SIZES[args.size]).to(device, dtype).eval()
    size = sum(parameter.numel() for parameter in encoder.parameters()) / 1e6
    print(f"encoder: {size:.1f}M parameters on {device}", file=sys.stderr)
    reranker = Reranker(encoder, device, args.batch)
    source = random.Random(args.seed)
    digest = hashlib.sha256()
    start = time.perf_counter()
    for number in range(args.requests):
        question = sentence(source, 4, 12)
        passages = [sentence(source, 6, encoder.config.max_length) for _ in range(args.passages)]
        ranking = reranker.rerank(question, passages, 5)
        digest.update(" ".join(f"{ranked.place}:{ranked.score:.3f}" for ranked in ranking).encode())
        print(f"{number:3d} {' '.join(f'{ranked.place}:{ranked.score:.2f}' for ranked in ranking)}  {question[:40]}")
    seconds = time.perf_counter() - start
    print(f"checksum {digest.hexdigest()[:16]}")
    print(
        f"{reranker.passages} passages in {seconds:.2f} s: {reranker.passages / seconds:.0f} a second", file=sys.stderr
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
