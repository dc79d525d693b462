"""What a mark costs, on both back ends: nothing recorded (armed) and recorded, interleaved, with an A/A floor.

    python benchmarks/profile/marks.py [--python PATH]... [--compiled-in] [--step cpu|cuda] [--save marks]

Three loops take turns in random order, in blocks of some milliseconds: A and A2 are two copies of an unmarked loop,
B is the same loop with a mark on the call in it. ``armed`` is B - A while nothing is recorded, ``recorded`` is B - A
while it is, ``floor`` is A2 - A; all in nanoseconds of the thread's own time a marked execution, medians of paired
differences with 95 % bootstrap intervals. With ``--step`` (needs torch) the loop is a step of 1,000 small operations
with 50 marked ones and one mark in a loop over 64 elements, and the figures are percent of a step, by the clock on the
wall; ``budget`` is a marks-only window of five seconds as a profile run has it, ``short`` one of a second: marks
thinned out, and the window's begin and end (arming included) counted in. Where marks are recorded in a window's first
steps only, these are timed with begin and end against as many plain steps, and the difference is spread over the
window.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

WINDOWS_S = {"short": 1.0, "budget": 5.0}  # of marks thinned out; a profile run's are 0.25 to 5 s

LOOP = """
def callee(value):
    return value


def plain(n):
    for i in range(n):
        callee(i)


def plain_again(n):
    for i in range(n):
        callee(i)


def marked(n):
    for i in range(n):
        callee(i)  # marked
"""


def step_source() -> str:
    """A module with ``plain``, ``plain_again`` and ``marked``: steps of 1,000 operations."""
    lines = ["import torch", "x = None", "rows = list(range(64))", "", "def ready(device):", "    global x"]
    lines += ["    x = torch.ones(64, device=device)", "", "def note(row):", "    return row", ""]
    for name in ("plain", "plain_again", "marked"):
        tail = "  # marked" if name == "marked" else ""
        lines += [f"def {name}(n):", "    y = x", "    for _ in range(n):"]
        for group in range(50):
            lines += [f"        y = torch.add(y, {group}){tail}", *["        y = y * 0.5"] * 19]
        lines += ["        for row in rows:", f"            note(row){tail}", ""]
    return "\n".join(lines)


def child(folder: Path, blocks: int, device: str | None) -> None:
    """Runs in the interpreter that is measured, with the agent in it."""
    sys.path.insert(0, str(folder))
    import timed

    from awp_lint.detector.profiling.agent import core

    assert core._agent is not None
    backend = core._agent.backend
    core._agent.state.wake = lambda: None  # no windows: this script does the switching
    if device:
        timed.ready(device)
        timed.plain(20)
    timed.marked(1)
    clock = functools.partial(spend, time.perf_counter if device else time.thread_time)
    number = calibrate(clock, timed.plain)
    marks = 114 if device else 1
    found: dict[str, list[float]] = {"armed": [], "recorded": [], "floor": []}
    length: list[float] = []
    gc.disable()
    for mode, switch in (("armed", backend.off), ("recorded", backend.on)):
        switch()
        timed.marked(number)
        for _ in range(blocks):
            spent = block(timed, clock, number)
            found[mode].append(spent["marked"] - spent["plain"])
            found["floor"].append(spent["plain_again"] - spent["plain"])
            length.append(spent["plain"])
    backend.off()
    every: int | None = 1
    if device:
        unit = statistics.median(length)
        thinned = thin(core._agent, unit)
        every = thinned.every if thinned else 1

        def window(steps: int) -> None:
            backend.on()
            timed.marked(steps)
            backend.off()

        for name, seconds in WINDOWS_S.items():
            number, whole = 60, 60 * unit  # steps in a row, and the time that their cost is spread over
            if thinned:
                thinned.window_s = seconds
                row = thinned.row()
                number = row + 10 if every is None else 2 * row * every
                whole = seconds if every is None else number * unit
            found[name] = []
            for _ in range(max(blocks // 4, 6)):
                spent = block(timed, clock, number, window)
                found[name].append((spent["marked"] - spent["plain"]) * number * unit / whole)
    core._agent.finish()
    result = {
        "python": "{}.{}.{}".format(*sys.version_info[:3]),
        "backend": backend.name,
        "marks": marks,
        "every": every,
        "unit_us": statistics.median(length) * 1e6,
        **{name: interval(values) for name, values in found.items()},
    }
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")


def block(
    timed: Any, clock: Callable[[Callable[[int], Any], int], float], number: int, marked: Any = None
) -> dict[str, float]:
    """Time a step of each loop, in random order."""
    loops = {"plain": timed.plain, "plain_again": timed.plain_again, "marked": marked or timed.marked}
    return {name: clock(loops[name], number) for name in random.sample(sorted(loops), len(loops))}


def thin(agent: Any, step: float) -> Any:
    """Thin out the marks as the schedule does, for what a step of ``marked`` records. None if that is little."""
    from awp_lint.detector.profiling.agent.budget import Thin, choose, event_ns

    marks = sorted(agent.state.armed)
    loop = next(mark.number for found in agent.plan.by_path.values() for mark in found if mark.unit)
    events = {mark: 2 for mark in marks if mark != loop}
    events[max(events)] = 128  # the one in the loop over 64 elements is the last
    backend = agent.backend
    choice = choose(events, 1, step, event_ns(agent.state.marks_ring()), backend.switches_all)
    if choice is None:
        return None
    chosen = frozenset(marks) if backend.switches_all else choice.marks
    agent.state.thin = Thin(chosen, choice.every, loop, backend.switch, choice.taken, 1e9 * step)
    return agent.state.thin


def calibrate(clock: Callable[[Callable[[int], Any], int], float], function: Callable[[int], Any]) -> int:
    """Repetitions for a block of about 5 ms."""
    number = 1
    while clock(function, number) * number < 0.005:
        number *= 2
    return number


def spend(now: Callable[[], float], function: Callable[[int], Any], number: int) -> float:
    """Seconds a repetition."""
    began = now()
    function(number)
    return (now() - began) / number


def interval(values: list[float]) -> tuple[float, float, float]:
    """Median and its 95 % bootstrap interval, in seconds."""
    draws = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(1000))
    return statistics.median(values), draws[25], draws[974]


def measured(python: str, blocks: int, device: str | None, compiled_in: bool) -> dict[str, Any]:
    """Run the child under an interpreter with the agent in it."""
    import os

    from awp_lint.detector.finding import Event, Mark, MarkKind
    from awp_lint.detector.profiling.launch import Plan, RunOptions, environment, write_plan
    from awp_lint.detector.profiling.session import PlannedMark

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        source = step_source() if device else LOOP
        (folder / "timed.py").write_text(source, encoding="utf-8")
        marks = []
        for number, line in enumerate(source.splitlines(), 1):
            if "# marked" in line:
                text = line.split("  # marked")[0]
                begin = len(text) - len(text.lstrip())
                begin = text.index("= ") + 2 if "= " in text else begin
                mark = Mark(MarkKind.CALL, number, begin, number, len(text), "marked", 0, Event.HOST)
                marks.append(PlannedMark(len(marks), "x", str(folder / "timed.py"), "timed", mark))
        if device:
            lines = source.splitlines()
            place_of = lines.index("def marked(n):") + 3
            mark = Mark(MarkKind.LOOP, place_of, 4, len(lines), len(lines[-1]), "marked", place_of - 2, Event.NONE)
            marks.append(PlannedMark(len(marks), "", str(folder / "timed.py"), "timed", mark, "step"))
        write_plan(folder, Plan(tuple(marks)), RunOptions())
        command = [python, __file__, "--child", place, "--blocks", str(blocks), *(["--step", device] if device else [])]
        own = {**os.environ, **({"AWP_LINT_AGENT_BACKEND": "compiled-in"} if compiled_in else {})}
        subprocess.run(command, check=True, env=environment(own, folder))
        result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        return result


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], help="interpreters to measure; this one by default")
    parser.add_argument("--step", choices=("cpu", "cuda"), help="a step of 1,000 operations instead of a bare loop")
    parser.add_argument("--compiled-in", action="store_true", help="also with marks compiled in, on each interpreter")
    parser.add_argument("--blocks", type=int, default=120)
    parser.add_argument("--save", metavar="NAME", help="also keep the result under benchmarks/results")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(Path(options.child), options.blocks, options.step)
        return
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from measure import save, table

    ways = [False, True] if options.compiled_in else [False]
    results = [
        measured(python, options.blocks, options.step, way)
        for python in options.python or [sys.executable]
        for way in ways
    ]
    names = ("armed", "recorded", *(WINDOWS_S if options.step else ()), "floor")
    rows = [["python", "back end", "plain µs", *names[:-1], "A/A floor"]]
    for result in results:
        row = [result["python"], result["backend"], f"{result['unit_us']:.3f}"]
        for name in names:
            middle, low, high = result[name]
            scale, unit = (100 / (result["unit_us"] / 1e6), "%") if options.step else (1e9, "ns")
            digits = 2 if options.step else 0
            row.append(f"{middle * scale:.{digits}f} {unit} [{low * scale:.{digits}f}, {high * scale:.{digits}f}]")
        rows.append(row)
    text = table(rows)
    print(text)
    if options.save:
        save(options.save, {"results": results, "blocks": options.blocks, "step": options.step}, text)


if __name__ == "__main__":
    main()
