"""The step-loop patch on four programs: made by the tool alone, outputs compared, speed measured, fallback exercised.

    python benchmarks/patches/steploop.py [--size gpu] [--pairs 6] [--only speech] [--float32] [--keep FOLDER]

Each program is copied and patched by ``awp-lint . --fix --unsafe-fixes --fix-only AWP401``. Original and patched copy
then run the same work again and again, each in a process of its own, neighbouring runs in random order; the first pair
is warm-up and not counted. Times are those that the programs print (captures included, loading of the model not).
Printed are the median of the paired ratios, its 95 % bootstrap interval, and whether all checksums agree. On a CPU the
patched program only calls through, so the ratio says what that costs; there the captured form is run in two more ways:
*static* (the same buffers, tensors in the place of numbers and whole caches, the step run again in the place of a
replay) and *failing* (every capture raises). With ``--float32`` both copies compute in float32 instead of bfloat16: a
step that reads its cache whole adds up in another order, which bfloat16 shows in a random model's tokens.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import io
import json
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_TIME = re.compile(r"([\d.]+) ms")
_CHECKSUM = re.compile(r"checksum (\w+)")


@dataclass(frozen=True)
class Program:
    """One program: its folder and its arguments by size."""

    name: str
    folder: str
    cpu: tuple[str, ...]
    gpu: tuple[str, ...]


PROGRAMS = (
    Program(
        "chat",
        "corpus/apps/chat",
        ("--requests", "4", "--max-tokens", "24"),
        ("--size", "gpu", "--requests", "4", "--max-tokens", "64"),
    ),
    Program("speech", "corpus/steploops/speech", ("--frames", "24"), ("--size", "gpu", "--frames", "32")),
    Program("denoise", "corpus/steploops/denoise", ("--steps", "8"), ("--size", "gpu", "--steps", "40")),
    Program("stream", "corpus/steploops/stream", ("--seconds", "2.1"), ("--size", "gpu", "--seconds", "5.1")),
)


def patched_copy(
    program: Program, folder: Path, tool: Callable[[list[str], Path], str], float32: bool = False
) -> tuple[Path, Path, str]:
    """The program as it is, the same with the patch, and what the tool said; ``tool`` runs awp-lint in a folder."""
    before, after = folder / program.name / "before", folder / program.name / "after"
    for copy in (before, after):
        shutil.copytree(ROOT / program.folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for source in copy.rglob("*.py") if float32 else ():
            source.write_text(source.read_text().replace("torch.bfloat16", "torch.float32"))
    said = tool([".", "--no-cache", "--exit-zero", "--fix", "--unsafe-fixes", "--fix-only", "AWP401"], after)
    if not any(after.rglob("step_graph.py")):
        raise SystemExit(f"{program.name}: no patch was made\n{said}")
    return before, after, said


def command_line(arguments: list[str], folder: Path) -> str:
    """Run awp-lint in a process of its own; what it says on standard error."""
    command = [sys.executable, "-m", "awp_lint", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stderr.strip()


class Worker:
    """A process that runs programs' ``main`` whenever it is asked to."""

    def __init__(self) -> None:
        command = [sys.executable, os.path.abspath(__file__), "--serve"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, folder: Path, arguments: tuple[str, ...], mode: str = "plain") -> dict[str, Any]:
        """One run: its checksum, its time in ms a step, and counts of the helper."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(folder), arguments, mode]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a program died")
        result: dict[str, Any] = json.loads(line)
        return result

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve() -> int:
    """In the worker: run a program once a line of standard input; it stays loaded until another one is asked for."""
    loaded: tuple[str, str] | None = None
    program: Any = None
    counts: dict[str, int] = {}
    for line in sys.stdin:
        folder, arguments, mode = json.loads(line)
        if loaded != (folder, mode):
            loaded = (folder, mode)
            for name, module in list(sys.modules.items()):
                if name != "__main__" and (getattr(module, "__file__", None) or "").startswith(tuple(sys.path[:1])):
                    del sys.modules[name]
            sys.path[0] = folder
            program = importlib.import_module("main")
            counts = _instrument(mode)
        sys.argv = ["main.py", *arguments]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            program.main()
        checksum = _CHECKSUM.search(out.getvalue())
        times = _TIME.findall(err.getvalue().strip().split("\n")[-1])
        said = [text for text in err.getvalue().split("\n") if "not captured" in text]
        result = {"checksum": checksum and checksum[1], "ms": float(times[0]), "said": said, **counts}
        print(json.dumps(result), flush=True)
    return 0


def _instrument(mode: str) -> dict[str, int]:
    """Count captures and replays of the patched program; make it capture without a device where ``mode`` says so."""
    name = next((n for n in sys.modules if n.rpartition(".")[2] == "step_graph"), None)
    counts = {"captures": 0, "replays": 0, "failed": 0}
    if name is None:
        return counts
    helper: Any = sys.modules[name]
    import torch
    from torch.utils._pytree import tree_flatten, tree_unflatten

    real = helper.record

    def on_host(run: Any) -> Any:
        """Runs the step where a graph would be replayed, into the same static results: a step writes the same again."""
        caches = [thing for thing in gc.get_objects() if type(thing).__name__ == "_Buffer"]
        lengths = [cache.on_device.clone() for cache in caches]
        kept, spec = tree_flatten(run())
        with torch.inference_mode():
            for cache, length in zip(caches, lengths, strict=True):
                cache.on_device.copy_(length)  # a capture executes nothing

        def replay() -> None:
            helper._state.hooks = []  # Python runs once more: let it count nothing
            fresh = tree_flatten(run())[0]
            helper._state.hooks = None
            for old, new in zip(kept, fresh, strict=True):
                if isinstance(old, torch.Tensor):
                    old.copy_(new)

        return replay, tree_unflatten(kept, spec)

    def record(run: Any) -> Any:
        if mode == "failing":
            counts["failed"] += 1
            raise RuntimeError("no capture today")
        replay, result = (on_host if mode == "static" else real)(run)
        counts["captures"] += 1

        def counted() -> None:
            counts["replays"] += 1
            replay()

        return counted, result

    helper.record = record
    if mode in ("static", "failing"):
        helper._has_cuda = lambda: True
        helper._usable = lambda leaves: not helper.in_step() and not torch.is_grad_enabled()
    return counts


def compare(
    program: Program,
    arguments: tuple[str, ...],
    folder: Path,
    workers: dict[str, Worker],
    pairs: int,
    modes: tuple[str, ...],
    float32: bool,
) -> bool:
    """Print what came out for one program; whether all checksums agree."""
    before, after, said = patched_copy(program, folder, command_line, float32)
    print(f"{program.name}: {said}; {' '.join(arguments)}{' (float32)' if float32 else ''}")
    folders = {"before": before, "after": after}
    times: dict[str, list[float]] = {"before": [], "after": []}
    sums: set[str] = set()
    captured = True
    counts: dict[str, Any] = {}
    order = random.Random(0)
    for index in range(pairs + 1):
        for arm in order.sample(["before", "after"], 2):
            result = workers[arm].run(folders[arm], arguments)
            sums.add(result["checksum"])
            if arm == "after":
                counts = result
            if index:
                times[arm].append(result["ms"])
    ratios = [a / b for a, b in zip(times["before"], times["after"], strict=True)]
    low, high = _interval(ratios)
    print(
        f"  before {statistics.median(times['before']):.2f} ms a step, after {statistics.median(times['after']):.2f}: "
        f"x{statistics.median(ratios):.2f} [{low:.2f}, {high:.2f}] over {pairs} pairs; "
        f"{counts['captures']} captures, {counts['replays']} replays {' '.join(counts['said'])}".rstrip()
    )
    for mode in modes:
        result = workers["after"].run(after, arguments, mode)
        sums.add(result["checksum"])
        captured = captured and (result["captures"] > 0) is (mode == "static")
        print(f"  {mode}: {result['captures']} captures, {result['replays']} replays, {result['failed']} failed")
    equal = len(sums) == 1
    print(f"  checksums {'equal' if equal else 'DIFFER'}: {' '.join(sorted(sums))}")
    return equal and captured


def _interval(values: list[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the median."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(4000))
    return medians[100], medians[-101]


def main() -> int:
    if sys.argv[1:] == ["--serve"]:
        return serve()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", action="append", choices=[program.name for program in PROGRAMS])
    parser.add_argument("--float32", action="store_true", help="both copies in float32 instead of bfloat16")
    parser.add_argument("--keep", help="leave the copies in this folder")
    options = parser.parse_args()
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no CUDA device"
    print(f"torch {torch.__version__}, {device}, {platform.machine()}, {os.cpu_count()} cores")
    folder = Path(options.keep or tempfile.mkdtemp())
    modes = ("failing",) if options.size == "gpu" else ("static", "failing")
    workers = {"before": Worker(), "after": Worker()}
    equal = [
        compare(program, getattr(program, options.size), folder, workers, options.pairs, modes, options.float32)
        for program in PROGRAMS
        if options.only is None or program.name in options.only
    ]
    for worker in workers.values():
        worker.stop()
    if not options.keep:
        shutil.rmtree(folder)
    return 0 if all(equal) else 1


if __name__ == "__main__":
    raise SystemExit(main())
