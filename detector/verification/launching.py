"""One launch of the user's program for a proof, and what its processes left."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from awp_lint.detector.profiling.launch import Plan, RunOptions, run_profiled
from awp_lint.detector.profiling.session import PlannedMark
from awp_lint.detector.verification.overlay import FileOverlay, PatchTrial, moved


@dataclass(frozen=True, slots=True)
class Wish:
    """A patch to be looked at in a launch: measured for so many seconds; ``compare``: its calls are compared too.

    ``allowed``: what it declares that it may change.
    """

    trial: PatchTrial
    seconds: float
    compare: bool = True
    allowed: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """What a launch is for; ``limit``: seconds for all of it.

    By the route "process" one patch, as ``arm`` says; by "instance" one patch, its versions begun in ``order``.
    """

    wishes: tuple[Wish, ...]
    limit: float
    seed: int
    route: str = "none"
    arm: str = "A"
    order: tuple[str, ...] = ("A", "A2", "B")


@dataclass(frozen=True, slots=True)
class Launched:
    """What came of a launch. ``proofs``: ``proof.json`` of each process that had a part, ``output``: its standard
    output's digest and its size, ``units``: times per unit in ns of the busiest unit loop after warm-up, by process."""

    exit_code: int | None
    stopped: str
    seconds: float
    proofs: tuple[dict[str, Any], ...]
    output: str
    output_bytes: int
    errors: str  # the last lines of its standard error
    units: tuple[tuple[float, ...], ...]
    faults: tuple[str, ...]  # of ours, recorded by the agents

    def parts(self, number: int) -> list[dict[str, Any]]:
        """What each process says of the request's patch of this number."""
        return [proof["patches"][number] for proof in self.proofs if number < len(proof.get("patches", ()))]

    @property
    def ended(self) -> bool:
        """Whether the program came to its own end."""
        return not self.stopped


class Launcher:
    """Launches one command again and again, its standard streams apart."""

    def __init__(
        self,
        command: Sequence[str],
        units: Sequence[PlannedMark],
        options: Mapping[str, Any],
        say: Callable[[str], None],
    ) -> None:
        self.command = tuple(command)
        self.units = tuple(units)
        self.options = dict(options)
        self.say = say
        self.interrupted = False

    def launch(self, request: Request) -> Launched:
        """Run the command once. Raises :class:`~awp_lint.detector.profiling.launch.LaunchError`."""
        folder = Path(tempfile.mkdtemp(prefix="awp-lint-"))
        try:
            write_task(folder, request, self.units)
            return self._run(folder, request)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, folder: Path, request: Request) -> Launched:
        known = ("max_wait", "ready_url", "ready_port", "load", "load_url", "rate", "load_body")
        given = {name: self.options[name] for name in known if self.options.get(name) is not None}
        streams = folder / "streams"
        streams.mkdir()
        files = [file for wish in request.wishes for file in wish.trial.files]
        digests = {file.path: hashlib.sha256(file.before).hexdigest() for file in files if not file.created}
        for mark in self.units:
            with contextlib.suppress(OSError):
                digests.setdefault(mark.path, hashlib.sha256(Path(mark.path).read_bytes()).hexdigest())
        options = RunOptions(
            **given,
            directory=str(folder),
            duration=2 * request.limit,
            streams=str(streams),
            until_done=True,
            limit=request.limit,
            env=_environment(),
        )
        began = time.monotonic()
        session = run_profiled(self.command, Plan(self.units, digests), options)
        # A signal that came to us was passed on: it meant the whole proof, not this launch.
        ended = not session.stopped and session.exit_code in (-signal.SIGTERM, -signal.SIGHUP)
        if session.stopped == "interrupted" or ended:
            self.interrupted = True
        processes = sorted(folder.glob("p*.*"))
        proofs = tuple(proof for place in processes if (proof := _json(place / "proof.json")))
        return Launched(
            session.exit_code,
            session.stopped,
            time.monotonic() - began,
            proofs,
            _digest(streams / "stdout"),
            (streams / "stdout").stat().st_size,
            _tail(streams / "stderr"),
            tuple(times for place in processes if (times := unit_times(place))),
            tuple(error for process in session.processes for error in process.errors),
        )


def _environment() -> dict[str, str]:
    """Ours, without what would choose another way to set marks."""
    return {name: value for name, value in os.environ.items() if name != "AWP_LINT_AGENT_BACKEND"}


def write_task(folder: Path, request: Request, units: Sequence[PlannedMark]) -> None:
    """Write ``task.json`` and the two texts of each file into the session's folder."""
    patches = [
        {
            "seconds": wish.seconds,
            "compare": wish.compare,
            "allowed": dict(wish.allowed),
            "files": [_file(folder, f"{number}-{place}", file, units) for place, file in enumerate(wish.trial.files)],
        }
        for number, wish in enumerate(request.wishes)
    ]
    task = {
        "route": request.route, "arm": request.arm, "order": list(request.order), "seed": request.seed,
        "patches": patches,
    }  # fmt: skip
    (folder / "task.json").write_text(json.dumps(task), encoding="utf-8")


def _file(folder: Path, name: str, file: FileOverlay, units: Sequence[PlannedMark]) -> dict[str, Any]:
    (folder / f"before-{name}.txt").write_bytes(file.before)
    (folder / f"after-{name}.txt").write_bytes(file.after)
    own = [mark for mark in units if mark.path == file.path]
    placed = moved(own, file.before.decode("utf-8", "replace"), file.after.decode("utf-8", "replace"))
    return {
        "path": file.path,
        "created": file.created,
        "digest": hashlib.sha256(file.before).hexdigest(),
        "before": f"before-{name}.txt",
        "after": f"after-{name}.txt",
        "functions": [{"names": f.names, "ordinal": f.ordinal} for f in file.touched.functions],
        "imports": [{"module": i.module, "name": i.name, "bound": i.bound} for i in file.touched.imports],
        "marks": [_mark(planned) for planned in placed],
    }


def _mark(planned: PlannedMark) -> dict[str, Any]:
    mark = planned.mark
    return {
        "index": planned.index, "path": planned.path, "module": planned.module, "kind": mark.kind.value,
        "line": mark.line, "column": mark.column, "end_line": mark.end_line, "end_column": mark.end_column,
        "function": mark.function, "function_line": mark.function_line, "unit": planned.unit,
    }  # fmt: skip


def unit_times(place: Path) -> tuple[float, ...]:
    """Times per unit of a process, in ns, from the end of its warm-up on; pauses (five times the median) left out."""
    laps = (_json(place / "proof.json") or {}).get("laps", ())
    if not laps:
        return ()
    middle = sorted(laps)[len(laps) // 2]
    return tuple(float(lap) for lap in laps if 0 < lap <= 5 * middle)


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _tail(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").strip().split("\n")
    return "\n".join(lines[-4:])


def say(line: str) -> None:
    """A line of progress on standard error."""
    print(f"awp-lint: {line}", file=sys.stderr, flush=True)
