"""Runs a command and says what it took; describes the machine; keeps results. Shared by the benchmark scripts."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class Run:
    """What one command took. ``cpu`` covers the whole process tree; memory in MiB."""

    wall: float
    cpu: float
    largest_mib: float  # peak resident memory of the largest process of the tree
    tree_mib: float | None  # peak of the sum over the tree, sampled; shared pages count once a process
    code: int
    output: str
    error: str


def awaited(file: Path, writer: subprocess.Popen[bytes]) -> Any:
    """The JSON that a process writes into a file, when it has. Raises SystemExit if it ends without."""
    while not file.exists():
        if writer.poll() is not None and not file.exists():
            raise SystemExit(f"the program ended with {writer.returncode} and without {file.name}")
        time.sleep(0.2)
    return json.loads(file.read_text(encoding="utf-8"))


def run(command: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Run:
    """Run a command to its end. Output is kept, whatever the exit code; raises OSError if it cannot start."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        child = subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=out, stderr=err, env={**os.environ, **(env or {})}, cwd=cwd
        )
        sampler = _TreeMemory(child.pid)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
        tree = sampler.stop()
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        unit = 1024 * 1024 if sys.platform == "darwin" else 1024
        return Run(
            wall=wall,
            cpu=usage.ru_utime + usage.ru_stime,
            largest_mib=usage.ru_maxrss / unit,
            tree_mib=tree,
            code=child.returncode,
            output=out.read().decode(errors="replace"),
            error=err.read().decode(errors="replace"),
        )


class _TreeMemory:
    """Samples the resident memory of a process and its descendants, where psutil is installed."""

    def __init__(self, pid: int, period: float = 0.1) -> None:
        self._done = threading.Event()
        self._peak = 0
        self._thread: threading.Thread | None = None
        try:
            import psutil
        except ImportError:
            return
        self._psutil = psutil
        self._thread = threading.Thread(target=self._watch, args=(pid, period), daemon=True)
        self._thread.start()

    def _watch(self, pid: int, period: float) -> None:
        while not self._done.wait(period):
            total = 0
            try:
                root = self._psutil.Process(pid)
                for process in [root, *root.children(recursive=True)]:
                    total += process.memory_info().rss
            except self._psutil.Error:
                continue
            self._peak = max(self._peak, total)

    def stop(self) -> float | None:
        self._done.set()
        if self._thread is None:
            return None
        self._thread.join()
        return self._peak / 2**20 if self._peak else None


def spread(values: Iterable[float]) -> dict[str, float]:
    """Median, least and greatest of the repeats."""
    numbers = list(values)
    return {"median": statistics.median(numbers), "min": min(numbers), "max": max(numbers), "n": len(numbers)}


def machine() -> dict[str, Any]:
    """The machine and the interpreter, as far as they matter to a figure."""
    cpu = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    return {
        "cpu": cpu,
        "cores": cores,
        "load_at_start": load,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def commit() -> str:
    """The commit that is measured, with a mark when the tree holds changes; empty outside a repository."""
    folder = Path(__file__).resolve().parent.parent
    try:
        head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=folder, capture_output=True, text=True)
        dirty = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no"], cwd=folder, capture_output=True, text=True
        )
    except OSError:
        return ""
    if head.returncode:
        return ""
    return head.stdout.strip() + (" with changes" if dirty.stdout.strip() else "")


def save(name: str, result: dict[str, Any], text: str, folder: Path = RESULTS) -> tuple[Path, Path]:
    """Write ``NAME.json`` and ``NAME.txt``; the text starts with date, machine and command."""
    folder.mkdir(parents=True, exist_ok=True)
    result = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "command": shown_command(),
        **result,
    }
    about = result["machine"]
    head = (
        f"{result['date']}, commit {result['commit'] or 'unknown'}\n"
        f"{about['cpu']}, {about['cores']} cores, {about['system']}, Python {about['python']}, "
        f"load {about['load_at_start']}\n$ {result['command']}\n\n"
    )
    as_json, as_text = folder / f"{name}.json", folder / f"{name}.txt"
    as_json.write_text(json.dumps(result, indent=1, default=_plain) + "\n")
    as_text.write_text(head + text.rstrip("\n") + "\n")
    return as_json, as_text


def shown_command() -> str:
    """The command as a reader would type it in the repository: folders of this machine are left out."""
    script = Path(sys.argv[0]).resolve()
    root = Path(__file__).resolve().parent.parent
    name = script.relative_to(root).as_posix() if script.is_relative_to(root) else script.name
    words = ("…/" + Path(word).name if word.startswith("/") else word for word in sys.argv[1:])
    return " ".join(["python", name, *map(_without_folder, words)])


def _without_folder(word: str) -> str:
    name, sign, value = word.partition("=")
    return f"{name}{sign}…/{Path(value).name}" if sign and value.startswith("/") else word


def _plain(value: Any) -> Any:
    if isinstance(value, Run):
        fields = asdict(value)
        del fields["output"], fields["error"]
        return fields
    return str(value)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns lined up, the first left-aligned, the others right-aligned; the first row is the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
