"""Transcribes made-up recordings: tones and noise with pauses.

    python main.py --requests 20 --size cpu
    python main.py --size gpu

Transcripts (nonsense, since the weights are random) and their checksum go to standard output, figures to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
import time

import torch

from transcriber.features import RATE
from transcriber.model import SIZES, SpeechModel
from transcriber.pipeline import Transcriber


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small speech-to-text service and its load.")
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--requests", type=int, default=60, help="recordings (default %(default)s)")
    parser.add_argument("--length", type=float, default=8.0, help="seconds each (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on a CPU (default %(default)s)")
    return parser.parse_args()


def recording(number: int, seconds: float, generator: torch.Generator) -> torch.Tensor:
    """Stretches of a gliding tone with noise, and pauses between them."""
    times = torch.arange(int(seconds * RATE)) / RATE
    tone = torch.sin(2 * math.pi * (200.0 + 40.0 * number) * times * (1.0 + 0.1 * times))
    noise = torch.randn(times.shape, generator=generator)
    speaking = torch.sin(2 * math.pi * times * (0.5 + 0.05 * (number % 5))) > -0.3
    sound = (0.6 * tone + 0.2 * noise) * speaking + 0.005 * noise
    sound[: RATE // 4] = 0.0
    return sound


def main() -> int:
    args = parse_args()
    if args.size == "gpu" and not args.device and not torch.cuda.is_available():
        print("--size gpu needs a CUDA device; give --device to run it elsewhere", file=sys.stderr)
        return 2
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    torch.set_num_threads(args.threads)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    torch.manual_seed(args.seed)
    model = SpeechModel(SIZES[args.size]).to(device, dtype).eval()
    transcriber = Transcriber(model, device, dtype)
    generator = torch.Generator().manual_seed(args.seed)
    digest = hashlib.sha256()
    start = time.perf_counter()
    for number in range(args.requests):
        transcript = transcriber.transcribe(recording(number, args.length, generator))
        digest.update(transcript.text.encode())
        print(f"{number:3d} {len(transcript.words):3d} words  {transcript.text[:60]}")
    seconds = time.perf_counter() - start
    print(f"checksum {digest.hexdigest()[:16]}")
    print(
        f"{transcriber.seconds:.0f} s of sound in {seconds:.2f} s: {transcriber.seconds / seconds:.0f} times real time",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
