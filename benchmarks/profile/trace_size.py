"""What a large trace costs to read and join: seconds and peak memory on a synthetic Kineto trace.

    python benchmarks/profile/trace_size.py
    python benchmarks/profile/trace_size.py --events 10000000 --gzip

The trace has Kineto's layout and a decode loop's mix: of seven events four are operators, one a runtime call, one a
kernel and one a copy, wait or annotation now and then; flow events come on top. Two marks open at each of the steps'
statements. The child process that is measured does what a profile run does after the program has ended.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import run, save, spread, table

BASE = 1_790_857_026_000_000_000
KERNELS_PER_STEP = 1000
KERNEL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)

CHILD = """
import dataclasses, sys, time
from awp_lint.detector.finding import *
from awp_lint.detector.profiling.run import analyse
from awp_lint.detector.profiling.session import *

path, steps, period = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
base = 1_790_857_026_000_000_000
started = time.perf_counter()
def finding(line, event):
    mark = Mark(MarkKind.STATEMENT, line, 0, line, 9, "decode", 1, event)
    return Finding(f"f{line}", "AWP101", "x", "/app/x.py", Span(line, 1, line, 10), "decode", "", (),
                   RootCause.RUNTIME, "token", Confidence.HIGH, mark)
findings = [finding(1, Event.WAIT), finding(2, Event.LAUNCHES)]
records = MarkRecords()
for step in range(steps):
    for begin, end, mark in ((0.1, 0.5, 1), (0.9, 0.9999, 0)):
        for share, opens in ((begin, True), (end, False)):
            records.time_ns.append(base + int((step + share) * period * 1000))
            records.thread.append(77)
            records.mark.append(mark)
            records.opens.append(opens)
ticks = tuple(base + int(step * period * 1000) for step in range(steps + 1))
window = Window(WindowKind.TRACE, ticks[0], ticks[-1], ticks, path)
later = tuple(t + 10**12 for t in ticks)
baseline = Window(WindowKind.BASELINE, later[0], later[-1], later)
planned = tuple(PlannedMark(i, f.id, f.path, "x", f.mark) for i, f in enumerate(findings))
process = ProcessSession(77, 1, (), "3.12", "2.13", True, (), None, "monitoring", planned, {0: base, 1: base},
                         frozenset((0, 1)), {}, (window, baseline), records)
outcome = analyse(Session("", (), 0, base, base, (process,)), findings)
print(time.perf_counter() - started)
for name in ("f1", "f2"):
    evidence = outcome.evidence[name]
    print(name, evidence.verdict.value, evidence.calls_per_unit, evidence.launches, evidence.reason)
print(outcome.profile["kernels"], outcome.profile["syncs"], outcome.profile["reasons"])
"""


def events(count: int) -> Iterator[str]:
    """``count`` complete events and their flow events, in Kineto's text."""
    made = correlation = 0
    now = device = 0.0
    while made < count:
        for kernel in range(KERNELS_PER_STEP):
            correlation += 1
            for depth, op in enumerate(("aten::linear", "aten::addmm", "aten::empty", "aten::view")):
                yield _host(
                    "cpu_op", op, now + depth, 20 - 4 * depth, f'"External id": {correlation}, "Ev Idx": {made}'
                )
                made += 1
            yield _host(
                "cuda_runtime", "cudaLaunchKernel", now + 8, 5.125, f'"cbid": 211, "correlation": {correlation}'
            )
            device = max(device, now + 15)
            yield (
                f'  {{\n    "ph": "X", "cat": "kernel", "name": "{KERNEL}", "pid": 0, "tid": 7,\n'
                f'    "ts": {device:.3f}, "dur": 3.250,\n    "args": {{\n      "External id": {correlation}, '
                f'"queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {correlation}, '
                f'"registers per thread": 32, "shared memory": 0, "blocks per SM": 0.5, "warps per SM": 2, '
                f'"grid": [64, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 3\n    }}\n  }}'
            )
            device += 3.25
            made += 2
            flow = f'"id": {correlation}, "pid": 77, "tid": 77, "ts": {now + 8:.3f}, "cat": "ac2g", "name": "ac2g"'
            yield f'  {{\n    "ph": "s", {flow}\n  }}'
            yield f'  {{\n    "ph": "f", {flow}, "bp": "e"\n  }}'
            if kernel == KERNELS_PER_STEP - 1:
                correlation += 1
                yield _host("cuda_runtime", "cudaStreamSynchronize", now + 14, 8, f'"correlation": {correlation}')
                made += 1
            now += 25


def _host(cat: str, name: str, start: float, took: float, args: str) -> str:
    return (
        f'  {{\n    "ph": "X", "cat": "{cat}", "name": "{name}", "pid": 77, "tid": 77,\n'
        f'    "ts": {start:.3f}, "dur": {took:.3f},\n    "args": {{\n      {args}\n    }}\n  }}'
    )


def write(path: Path, count: int) -> int:
    """Write the trace; returns how many whole steps it holds."""
    with path.open("w") as file:
        file.write(f'{{\n  "schemaVersion": 1,\n  "baseTimeNanoseconds": {BASE},\n  "traceEvents": [\n')
        separator = ""
        for event in events(count):
            file.write(separator + event)
            separator = ",\n"
        file.write('\n  ],"traceName": "x" }')
    return -(-count // (6 * KERNELS_PER_STEP + 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=3_000_000)
    parser.add_argument("--gzip", action="store_true", help="the trace is compressed")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        steps = write(path, options.events)
        size = path.stat().st_size
        if options.gzip:
            with path.open("rb") as plain, gzip.open(f"{path}.gz", "wb", compresslevel=3) as packed:
                shutil.copyfileobj(plain, packed)
            path = Path(f"{path}.gz")
        command = [sys.executable, "-c", CHILD, str(path), str(steps), str(25.0 * KERNELS_PER_STEP)]
        runs = [run(command) for _ in range(options.repeat)]
    for failed in (r for r in runs if r.code):
        print(failed.error, file=sys.stderr)
        return 1
    figures = {
        "events": options.events,
        "json_mib": round(size / 2**20),
        "gzip": options.gzip,
        "wall_s": spread(r.wall for r in runs),
        "cpu_s": spread(r.cpu for r in runs),
        "peak_mib": spread(r.largest_mib for r in runs),
        "output": runs[-1].output.split("\n"),
    }
    rows = [["", "median", "min", "max"]]
    for name in ("wall_s", "cpu_s", "peak_mib"):
        rows.append([name, *(f"{figures[name][key]:.1f}" for key in ("median", "min", "max"))])
    text = f"{options.events} events, {figures['json_mib']} MiB of JSON\n{table(rows)}\n{runs[-1].output}"
    print(text)
    if options.save:
        save("trace_size", figures, text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
