"""Starts the adapter server, asks it a number of questions over the loopback interface, and stops.

    python main.py --requests 8 --size cpu
    python main.py --size gpu --adapters 16

Answers and their checksum go to standard output, figures to standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import sys
import time

import torch

from loraserve.adapters import AdapterStore, make_adapter
from loraserve.engine import Engine
from loraserve.model import SIZES, BaseModel
from loraserve.server import LoraServer

QUESTIONS = ("summarise this", "translate that", "write a test", "explain the error", "name the parts")


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small server for many adapters, and its load.")
    parser.add_argument("--size", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--requests", type=int, default=24, help="questions (default %(default)s)")
    parser.add_argument("--batch", type=int, default=6, help="rows decoded together (default %(default)s)")
    parser.add_argument("--adapters", type=int, default=4, help="adapters there are (default %(default)s)")
    parser.add_argument("--max-tokens", type=int, default=40, help="longest answer (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on a CPU (default %(default)s)")
    return parser.parse_args()


def build(args: argparse.Namespace, device: torch.device) -> LoraServer:
    torch.manual_seed(args.seed)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    config = SIZES[args.size]
    store = AdapterStore()
    model = BaseModel(config, store).to(device, dtype).eval()
    for number in range(args.adapters):
        store.add(make_adapter(f"adapter-{number}", model.adapted(), config.rank, 0.5, args.seed + number))
    size = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    print(f"base model: {size:.1f}M parameters on {device}, {len(store.names())} adapters", file=sys.stderr)
    # the load sends a whole wave at once, so its batches wait for stragglers
    return LoraServer(Engine(model, device, args.seed), store.names(), args.batch, window=2.0)


async def ask(address: tuple[str, int], number: int, adapters: int, limit: int, source: random.Random) -> list[int]:
    body = {
        "number": number,
        "adapter": f"adapter-{number % adapters}" if number % 5 else "",
        "prompt": f"{source.choice(QUESTIONS)} {source.randint(1, 99)}",
        "limit": limit - number % 7,
        "temperature": 0.7 + 0.1 * (number % 4),
        "top_k": 20 if number % 2 else 0,
    }
    reader, writer = await asyncio.open_connection(*address)
    writer.write(json.dumps(body).encode() + b"\n")
    await writer.drain()
    answer = json.loads(await reader.readline())
    writer.close()
    return list(answer["tokens"])


async def load(server: LoraServer, args: argparse.Namespace) -> list[list[int]]:
    """All questions in waves as large as a batch."""
    worker = asyncio.create_task(server.work())
    listener = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    host, port = listener.sockets[0].getsockname()[:2]
    source = random.Random(args.seed)
    answers: list[list[int]] = []
    for first in range(0, args.requests, args.batch):
        wave = range(first, min(first + args.batch, args.requests))
        asked = [ask((host, port), number, args.adapters, args.max_tokens, source) for number in wave]
        answers += await asyncio.gather(*asked)
    worker.cancel()
    listener.close()
    return answers


def main() -> int:
    args = parse_args()
    if args.size == "gpu" and not args.device and not torch.cuda.is_available():
        print("--size gpu needs a CUDA device; give --device to run it elsewhere", file=sys.stderr)
        return 2
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    torch.set_num_threads(args.threads)
    server = build(args, device)
    start = time.perf_counter()
    answers = asyncio.run(load(server, args))
    seconds = time.perf_counter() - start
    digest = hashlib.sha256()
    for number, tokens in enumerate(answers):
        digest.update(" ".join(map(str, tokens)).encode())
        print(f"{number:3d} {len(tokens):3d} tokens  {' '.join(map(str, tokens[:12]))}")
    print(f"checksum {digest.hexdigest()[:16]}")
    produced = sum(map(len, answers))
    print(f"{produced} tokens in {seconds:.2f} s: {produced / seconds:.1f} a second", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
