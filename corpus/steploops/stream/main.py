"""Transcribes random audio features chunk by chunk, as they would come from a microphone.

    python main.py --size cpu --seconds 4

The checksum of the token ids goes to standard output, the time to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time

import torch
from encoder import SIZES, StreamingEncoder


class Transcriber:
    def __init__(self, encoder: StreamingEncoder, chunk: int) -> None:
        self.encoder = encoder
        self.chunk = chunk

    @torch.inference_mode()
    def transcribe(self, features: torch.Tensor) -> list[int]:
        """Token ids of features (1, frames, bins); a token counts once, however long it lasts."""
        state = self.encoder.initial_state(features.shape[0])
        tokens: list[int] = []
        last = 0
        for chunk in features.split(self.chunk, dim=1):
            scores, state = self.encoder(chunk, state)
            for token in scores[0].argmax(dim=-1).tolist():
                if token not in (0, last):
                    tokens.append(token)
                last = token
        return tokens


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--seconds", type=float, default=4.1, help="of audio, 100 frames each")
    parser.add_argument("--files", type=int, default=2)
    args = parser.parse_args()
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = SIZES[args.size]
    transcriber = Transcriber(StreamingEncoder(config).to(device, dtype).eval(), chunk=16)
    frames = int(args.seconds * 100)
    audio = torch.randn(args.files, 1, frames, config.features, generator=torch.Generator().manual_seed(1))
    digest = hashlib.sha256()
    start = time.perf_counter()
    for features in audio.to(device, dtype):
        digest.update(repr(transcriber.transcribe(features)).encode())
    seconds = time.perf_counter() - start
    chunks = args.files * -(-frames // transcriber.chunk)
    print(f"checksum {digest.hexdigest()[:16]}")
    print(f"{chunks} chunks, {seconds / chunks * 1e3:.2f} ms each", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
