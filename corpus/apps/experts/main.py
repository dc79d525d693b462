"""Holds a number of conversations with a mixture-of-experts model.

    python main.py --requests 6 --size cpu
    python main.py --size gpu

Answers and their checksum go to standard output, figures to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time

import torch

from moechat.chat import Vocabulary, answer
from moechat.model import SIZES, MoeModel

PROMPTS = (
    "tell me what the weather will be",
    "how long does it take to learn the piano",
    "write three lines on autumn",
    "why is the sky blue in the morning and red at night",
)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small mixture-of-experts chat and its load.")
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--requests", type=int, default=12, help="prompts (default %(default)s)")
    parser.add_argument("--max-tokens", type=int, default=48, help="longest answer (default %(default)s)")
    parser.add_argument("--temperature", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on a CPU (default %(default)s)")
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    if args.size == "gpu" and not args.device and not torch.cuda.is_available():
        print("--size gpu needs a CUDA device; give --device to run it elsewhere", file=sys.stderr)
        return 2
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    torch.set_num_threads(args.threads)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    config = SIZES[args.size]
    torch.manual_seed(args.seed)
    with torch.device(device):
        model = MoeModel(config).to(dtype).eval()
    vocabulary = Vocabulary(config.vocab_size)
    generator = torch.Generator(device).manual_seed(args.seed)
    digest = hashlib.sha256()
    pieces = 0

    def show(piece: str) -> None:
        nonlocal pieces
        pieces += 1

    start = time.perf_counter()
    for number in range(args.requests):
        prompt = PROMPTS[number % len(PROMPTS)]
        text = answer(model, vocabulary, prompt, device, args.max_tokens, args.temperature, generator, show)
        digest.update(text.encode())
        print(f"{number:3d} {text[:60]}")
    seconds = time.perf_counter() - start
    print(f"checksum {digest.hexdigest()[:16]}")
    print(f"{pieces} words in {seconds:.2f} s: {pieces / seconds:.1f} a second", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
