"""Speaks a few sentences: text in, frames of codes out.

    python main.py --size cpu --frames 40

The checksum of the codes goes to standard output, the time to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time

import torch
from model import SIZES, SpeechModel

SENTENCES = ("The train to the coast leaves at nine.", "Please close the window.", "It will rain in the afternoon.")


class Synthesizer:
    def __init__(self, model: SpeechModel, device: torch.device) -> None:
        self.model = model
        self.device = device

    @torch.inference_mode()
    def generate(self, text: str, max_frames: int) -> torch.Tensor:
        """Codes (frames, codebooks) of a sentence; code 0 of the first codebook ends it."""
        ids = torch.tensor([list(text.encode())], device=self.device)
        caches = self.model.decoder.new_cache()
        hidden = self.model.decoder(self.model.text(ids), caches)
        frames = []
        for _ in range(max_frames):
            codes = self.model.depth_decoder(hidden[:, -1])
            if codes[0, 0] == 0:
                break
            frames.append(codes)
            hidden = self.model.decoder(self.model.embed_frame(codes), caches)
        return torch.cat(frames)


def build(size: str, device: torch.device, seed: int) -> SpeechModel:
    torch.manual_seed(seed)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    return SpeechModel(SIZES[size]).to(device, dtype).eval()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--repeat", type=int, default=1, help="how often all sentences are spoken")
    args = parser.parse_args()
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    torch.set_num_threads(1)
    synthesizer = Synthesizer(build(args.size, device, seed=0), device)
    digest = hashlib.sha256()
    start, frames = time.perf_counter(), 0
    for _ in range(args.repeat):
        for sentence in SENTENCES:
            codes = synthesizer.generate(sentence, args.frames)
            frames += len(codes)
            digest.update(codes.cpu().numpy().tobytes())
    seconds = time.perf_counter() - start
    print(f"checksum {digest.hexdigest()[:16]}")
    print(f"{frames} frames, {seconds / frames * 1e3:.2f} ms each", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
