"""Starts the chat server, asks it a number of questions over the loopback interface, and stops.

    python main.py --requests 12 --size cpu
    python main.py --serve --port 8000 --size gpu

Answers and their checksum go to standard output, figures to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import statistics
import sys
import threading
import time

import torch

from chatserve.config import CHAT_MODELS, RERANKERS
from chatserve.generate import Engine
from chatserve.load import NOTES, Answer, run_load
from chatserve.model import build_chat_model, fingerprint
from chatserve.retrieval import Reranker
from chatserve.server import Batcher, ChatServer
from chatserve.tokenizer import Tokenizer


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small chat server and its load.")
    parser.add_argument("--size", choices=sorted(CHAT_MODELS), default="cpu")
    parser.add_argument("--device", help="default: cuda for --size gpu, else cpu")
    parser.add_argument("--requests", type=int, default=24, help="questions to ask (default %(default)s)")
    parser.add_argument("--batch", type=int, default=4, help="rows decoded together (default %(default)s)")
    parser.add_argument("--max-tokens", type=int, default=64, help="longest answer (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on a CPU (default %(default)s)")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--serve", action="store_true", help="serve until interrupted instead of asking")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def build_server(args: argparse.Namespace) -> ChatServer:
    device = torch.device(args.device or ("cuda" if args.size == "gpu" else "cpu"))
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    config = CHAT_MODELS[args.size]
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    tokenizer = Tokenizer(config.vocab_size)
    model = build_chat_model(config, device, dtype, args.seed)
    size = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    print(f"model: {size:.0f}M parameters on {device}, fingerprint {fingerprint(model):.4f}", file=sys.stderr)
    engine = Engine(model, tokenizer, args.batch, device, dtype, args.seed)
    print(f"warm-up: {engine.warm_up():.1f} ms a step", file=sys.stderr)
    reranker = Reranker(RERANKERS[args.size], tokenizer, device, args.seed)
    # the load sends a whole wave at once, so its batches wait for stragglers; a real client should not have to
    batcher = Batcher(engine, window=0.01 if args.serve else 2.0)
    batcher.start()
    return ChatServer((args.host, args.port), batcher, reranker, tokenizer, list(NOTES))


def report(answers: list[Answer], engine: Engine, seconds: float) -> None:
    digest = hashlib.sha256()
    for answer in answers:
        digest.update(answer.text.encode())
        print(f"{answer.id:3d} {answer.tokens:3d} tokens  {answer.text[:40]!a}")
    print(f"checksum {digest.hexdigest()[:16]}")
    stats = engine.stats
    first = statistics.median(answer.first_token for answer in answers)
    print(
        f"{stats.tokens} tokens in {seconds:.2f} s: {stats.tokens / seconds:.1f} tokens/s, {stats.steps} steps of "
        f"{stats.seconds / stats.steps * 1e3:.2f} ms, median time to first token {first * 1e3:.0f} ms, "
        f"mean log-probability {stats.logprob / stats.steps:.3f}",
        file=sys.stderr,
    )


def main() -> int:
    args = parse_args()
    logging.basicConfig(level=logging.DEBUG if args.verbose else logging.WARNING)
    if args.size == "gpu" and not args.device and not torch.cuda.is_available():
        print("--size gpu needs a CUDA device; give --device to run it elsewhere", file=sys.stderr)
        return 2
    server = build_server(args)
    host, port = server.server_address[:2]
    if args.serve:
        print(f"listening on http://{host}:{port}", file=sys.stderr)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        server.batcher.stop()
        return 0
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    start = time.perf_counter()
    answers = run_load((str(host), port), args.requests, args.batch, args.max_tokens)
    seconds = time.perf_counter() - start
    server.shutdown()
    server.batcher.stop()
    report(answers, server.batcher.engine, seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
