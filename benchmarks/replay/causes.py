"""Programs built to have one root cause each, profiled, against what the diagnosis says.

    python benchmarks/replay/causes.py                       all of them, on the accelerator
    python benchmarks/replay/causes.py launches waits        some
    python benchmarks/replay/causes.py run launches --seconds 8      one program by itself (this is what gets profiled)

Right is the root cause and, where the program is built to leave the device idle, the largest cause of the idle time.
The throttled device is the arithmetic program with made-up telemetry, since clocks cannot be slowed on request.
"""

from __future__ import annotations

import argparse
import ast
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


@dataclass(frozen=True)
class Built:
    """What a program is built to show; ``idle`` is "" where the device is busy."""

    root: str
    idle: str
    why: str


EXPECTED = {
    "launches": Built("runtime", "launch", "hundreds of tiny kernels, launched one by one"),
    "waits": Built("runtime", "sync", "a value is read after every kernel"),
    "starved": Built("runtime", "host", "batches are made on the host, with no call to the device meanwhile"),
    "python": Built("runtime", "host", "tokens are handled in Python between the steps"),
    "retraced": Built("runtime", "host", "the step is traced again at every call"),
    "uploads": Built("memory", "", "pageable batches of 64 MiB are copied to the device"),
    "downloads": Built("memory", "", "results of 64 MiB are copied to the host"),
    "bandwidth": Built("memory", "", "elementwise work on tensors that no cache holds"),
    "decode": Built("memory", "", "products of weights with one vector, as a graph"),
    "arithmetic": Built("compute", "", "large 16-bit products"),
    "convolution": Built("compute", "", "large convolutions"),
    "throttled": Built("system", "", "large products at reduced clocks (made-up telemetry)"),
}


KEPT: list[object] = []


# the programs ------------------------------------------------------------------------------------------------------


def program(name: str, device: str) -> Callable[[], object]:
    """One step of a program."""
    import torch

    small = device != "cuda"
    dtype = torch.float32 if small else torch.bfloat16

    def tensor(*shape: int) -> torch.Tensor:
        return torch.randn(*(min(size, 64) if small else size for size in shape), device=device, dtype=dtype)

    if name == "launches":
        row = tensor(64)

        def step() -> object:
            x = row
            for _ in range(300):
                x = x * 1.0001
            return x

    elif name == "waits":
        matrix = tensor(1024, 1024)

        def step() -> object:
            total = 0.0
            for _ in range(20):
                total += (matrix @ matrix).sum().item()
            return total

    elif name == "starved":
        matrix = tensor(2048, 2048)

        def step() -> object:
            batch = torch.tensor([[float((i * j) % 7) for i in range(256)] for j in range(256)], dtype=dtype)
            x = torch.nn.functional.pad(batch.to(device), (0, matrix.shape[0] - 256)) if not small else matrix
            return x @ matrix

    elif name == "python":
        matrix = tensor(2048, 2048)
        words = {number: f"w{number}" for number in range(50_000)}

        def step() -> object:
            x = matrix @ matrix
            text = " ".join(words[(number * 37) % 50_000] for number in range(40_000))
            return x, len(text)

    elif name == "retraced":
        layer = torch.nn.Sequential(*(torch.nn.Linear(64, 64, device=device, dtype=dtype) for _ in range(8)))
        x = tensor(64, 64)

        def step() -> object:
            return torch.jit.trace(layer, x, check_trace=False)(x)

    elif name in ("uploads", "downloads"):
        host = torch.randn(64 if small else 16 << 20)
        there = host.to(device)

        def step() -> object:
            return host.to(device) * 2 if name == "uploads" else (there * 2).cpu()

    elif name == "bandwidth":
        x = tensor(512 << 20 >> 1)

        def step() -> object:
            torch.add(x, 1.0, out=x)
            return torch.mul(x, 0.999, out=x)

    elif name == "decode":
        weights = [tensor(8192, 8192) for _ in range(24)]
        vector = tensor(1, 8192)

        def forward() -> torch.Tensor:
            x = vector
            for weight in weights:
                x = x @ weight * 0.01
            return x

        step = forward if small else _as_graph(forward)
        KEPT.extend((*weights, vector))  # a graph reads them and does not keep them

    elif name == "convolution":
        layer = (
            torch.nn.Conv2d(512, 512, 3, padding=1, device=device, dtype=dtype)
            if not small
            else torch.nn.Conv2d(4, 4, 3)
        )
        image = tensor(64, 512, 64, 64) if not small else torch.randn(1, 4, 8, 8)
        layer, image = layer.to(memory_format=torch.channels_last), image.to(memory_format=torch.channels_last)

        def step() -> object:
            return layer(image)

    else:  # arithmetic, throttled
        matrix = tensor(8192, 8192)

        def step() -> object:
            return matrix @ matrix @ matrix

    return step


def _as_graph(forward: Callable[[], object]) -> Callable[[], object]:
    import torch

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        forward()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        forward()
    return graph.replay


def run_program(name: str, device: str, seconds: float) -> None:
    import torch

    torch.set_num_threads(1)
    with torch.inference_mode():
        step = program(name, device)
        serve(step, device, time.monotonic() + seconds)


def serve(step: Callable[[], object], device: str, end: float) -> None:
    """Requests of sixteen steps, each drained at its end as a server answers."""
    import torch

    while time.monotonic() < end:
        generate(step)
        if device == "cuda":
            torch.cuda.synchronize()


def generate(step: Callable[[], object]) -> None:
    """A request: a loop of steps."""
    for _ in range(16):
        step()


# profiled ----------------------------------------------------------------------------------------------------------


def step_loop() -> Any:
    """The loop that counts steps, as the static half would give it."""
    from awp_lint.detector.finding import Event, Mark, MarkKind

    @dataclass(frozen=True)
    class Loop:
        path: str
        module: str
        mark: Mark
        unit: str

    here = Path(__file__).resolve()
    function = next(
        node
        for node in ast.parse(here.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "generate"
    )
    loop = next(node for node in function.body if isinstance(node, ast.For))
    place = (loop.lineno, loop.col_offset, loop.end_lineno or loop.lineno, loop.end_col_offset or 0)
    mark = Mark(MarkKind.LOOP, *place, "generate", function.lineno, Event.NONE)
    return Loop(str(here), "__main__", mark, "step")


def profiled(name: str, device: str, seconds: float) -> dict[str, Any]:
    """The profile of one program."""
    from awp_lint.detector.profiling.diagnosis import root_cause
    from awp_lint.detector.profiling.run import profile_findings

    command = [
        sys.executable,
        str(Path(__file__).resolve()),
        "run",
        name,
        "--seconds",
        str(seconds),
        "--device",
        device,
    ]
    profile = profile_findings([], [step_loop()], command, {"warmup": "auto", "duration": seconds}).profile
    if name == "throttled" and profile["gap_ratio"] is not None:
        devices = (profile["telemetry"] or {}).get("devices") or [{}]
        slow = {"devices": [{**devices[0], "throttled": {"thermal (hardware)": 0.6}, "gpu_util_pct": 100.0}]}
        cause = root_cause(profile["gap_ratio"], profile["memcpy_share"], profile["causes"], slow)
        profile = {**profile, "root_cause": cause}
    return profile


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", default=[], metavar="PROGRAM", help=f"run, or of {', '.join(EXPECTED)}")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    options = parser.parse_args()
    if options.programs[:1] == ["run"]:
        run_program(options.programs[1], options.device, options.seconds)
        return 0
    from measure import save, table

    rows = [["program", "built to be", "found", "largest idle cause", "gap", "step ms", "right"]]
    figures: list[dict[str, Any]] = []
    for name in options.programs or EXPECTED:
        built = EXPECTED[name]
        profile = profiled(name, options.device, options.seconds)
        causes, gap = profile["causes"], profile["gap_ratio"]
        idle = max(causes, key=lambda cause: causes[cause]) if causes else ""
        right = profile["root_cause"] == built.root and (not built.idle or idle == built.idle)
        expected = f"{built.root} ({built.idle})" if built.idle else built.root
        shown_gap = "" if gap is None else f"{gap:.2f}"
        shown_ms = "" if profile["unit_ms"] is None else f"{profile['unit_ms']:.3g}"
        found = str(profile["root_cause"])
        rows.append([name, expected, found, idle, shown_gap, shown_ms, "yes" if right else "no"])
        figures.append({"program": name, "built": expected, "why": built.why, "found": found, "causes": causes,
                        "gap": gap, "unit_ms": profile["unit_ms"], "right": right})  # fmt: skip
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    hits = sum(row["right"] for row in figures)
    text = f"{table(rows)}\n{hits} of {len(figures)} right"
    print(text)
    if options.save:
        save("root-causes", {"programs": figures, "right": hits}, text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
