"""Continues made-up prompts with speculative decoding.

    python main.py --requests 4 --size cpu
    python main.py --size gpu --lookahead 6

Continuations and their checksum go to standard output, figures to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time

import torch

from draftdecode.model import DRAFTS, TARGETS, build
from draftdecode.speculative import SpeculativeDecoder

OPENINGS = (
    "the quick brown fox",
    "in the beginning there was",
    "a function that returns",
    "dear customer, we are happy to",
    "the results of the experiment show",
)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Speculative decoding and its load.")
    parser.add_argument("--size", choices=sorted(TARGETS), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--requests", type=int, default=8, help="prompts (default %(default)s)")
    parser.add_argument("--max-tokens", type=int, default=64, help="longest continuation (default %(default)s)")
    parser.add_argument("--lookahead", type=int, default=4, help="tokens drafted a round (default %(default)s)")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on a CPU (default %(default)s)")
    return parser.parse_args()


def prompt(source: random.Random) -> list[int]:
    """Bytes of an opening as tokens; 0 ends a text and does not occur."""
    return list(f"{source.choice(OPENINGS)} {source.randint(1, 999)} ".encode())


def main() -> int:
    args = parse_args()
    if args.size == "gpu" and not args.device and not torch.cuda.is_available():
        print("--size gpu needs a CUDA device; give --device to run it elsewhere", file=sys.stderr)
        return 2
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    torch.set_num_threads(args.threads)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    target = build(TARGETS[args.size], device, dtype, args.seed)
    draft = build(DRAFTS[args.size], device, dtype, args.seed + 1)
    for name, model in (("target", target), ("draft", draft)):
        size = sum(parameter.numel() for parameter in model.parameters()) / 1e6
        print(f"{name}: {size:.1f}M parameters on {device}", file=sys.stderr)
    decoder = SpeculativeDecoder(target, draft, device, dtype, args.lookahead, args.seed)
    source = random.Random(args.seed)
    digest = hashlib.sha256()
    pieces: list[int] = []
    start = time.perf_counter()
    for number in range(args.requests):
        tokens = decoder.generate(
            prompt(source), args.max_tokens, args.temperature, lambda fresh: pieces.append(len(fresh))
        )
        digest.update(" ".join(map(str, tokens)).encode())
        print(f"{number:3d} {len(tokens):3d} tokens  {' '.join(map(str, tokens[:12]))}")
    seconds = time.perf_counter() - start
    print(f"checksum {digest.hexdigest()[:16]}")
    statistics = decoder.statistics
    produced = sum(statistics.lengths)
    print(
        f"{produced} tokens in {seconds:.2f} s: {produced / seconds:.1f} a second, {statistics.rounds} rounds, "
        f"{statistics.acceptance:.0%} of the drafts accepted, {sum(pieces) / max(len(pieces), 1):.2f} tokens a round",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
