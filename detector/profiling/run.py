"""A profile run from findings to evidence: plan the marks, run the command, read what it left, judge.

Nothing heavy is imported here, and NumPy only once there is something to analyse.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Evidence, Finding, Mark
from awp_lint.detector.profiling.launch import LateMarks
from awp_lint.detector.profiling.modules import module_of
from awp_lint.detector.profiling.session import PlannedMark, ProcessSession, Session

if TYPE_CHECKING:
    from awp_lint.detector.profiling.costs import Costs
    from awp_lint.detector.profiling.launch import RunOptions
    from awp_lint.detector.profiling.timeline import Trace


class Dependencies(LateMarks, Protocol):
    """Late marks that belong to findings."""

    notes: list[str]

    def of(self, session: Session) -> list[Finding]:
        """The findings, once the program has ended."""


class UnitLoop(Protocol):
    """A loop or function whose iterations or calls are units, as the static half gives them."""

    @property
    def path(self) -> str: ...

    @property
    def module(self) -> str: ...

    @property
    def mark(self) -> Mark: ...

    @property
    def unit(self) -> str:
        """ "step" or "request"."""


@dataclass(slots=True)
class ProfileOutcome:
    """What a run gives the report. ``profile`` is the contract's object, ready for JSON."""

    evidence: dict[str, Evidence]
    profile: dict[str, Any]
    extra_findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    exit_code: int | None = None
    dependencies: list[Finding] = field(default_factory=list)  # with their evidence: findings outside the scan


def profile_findings(
    findings: Sequence[Finding], units: Sequence[UnitLoop], command: Sequence[str], options: Mapping[str, Any]
) -> ProfileOutcome:
    """Run the command with marks on the findings and judge each.

    Raises :class:`UsageError` where the command cannot start or NumPy is missing.
    """
    require_numpy()
    from awp_lint.detector.profiling.launch import LaunchError, Plan, run_profiled
    from awp_lint.detector.profiling.telemetry import Telemetry

    marks = plan(findings, units)
    folder = tempfile.mkdtemp(prefix="awp-lint-")
    try:
        with Telemetry() as telemetry:
            session = run_profiled(command, Plan(tuple(marks), digests(marks)), run_options(options, folder))
            summary = telemetry.summary(session)
        outcome = with_late(options.get("late"), session, findings, summary)
        if options.get("perfetto"):
            from awp_lint.detector.profiling import perfetto

            try:
                perfetto.write(options["perfetto"], session, findings, outcome.evidence)
            except OSError as error:
                outcome.notes.append(f"the trace for Perfetto could not be written: {error}")
        return outcome
    except LaunchError as error:
        raise UsageError(str(error)) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_options(options: Mapping[str, Any], folder: str) -> RunOptions:
    """The launcher's options from the command line's; those that the launcher does not know are left out."""
    from awp_lint.detector.profiling.launch import RunOptions

    known = {field.name for field in fields(RunOptions)}
    given = {name: value for name, value in options.items() if name in known and value is not None}
    if "warmup" in given:
        given["warmup"] = None if given["warmup"] == "auto" else float(given["warmup"])
    return RunOptions(**{"say": _say, **given, "directory": folder})


def _say(line: str) -> None:
    print(f"awp-lint: {line}", file=sys.stderr, flush=True)


def digests(marks: Sequence[PlannedMark]) -> dict[str, str]:
    """sha256 of each marked file, by path; a file that cannot be read has none."""
    found = {}
    for path in {planned.path for planned in marks}:
        try:
            found[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        except OSError:
            continue
    return found


def plan(findings: Sequence[Finding], units: Sequence[UnitLoop], first: int = 0) -> list[PlannedMark]:
    """Number the marks from ``first`` on: one a place, shared by the findings that have it, then the unit loops.

    Paths are real ones.
    """
    planned: list[PlannedMark] = []
    places: set[tuple[str, Mark]] = set()
    for finding in findings:
        if finding.mark is None or finding.cell is not None:
            continue
        path = os.path.realpath(finding.path)
        if (path, finding.mark) not in places:
            places.add((path, finding.mark))
            planned.append(PlannedMark(first + len(planned), finding.id, path, module_of(path), finding.mark))
    for loop in units:
        path = os.path.realpath(loop.path)
        planned.append(
            PlannedMark(first + len(planned), "", path, loop.module or module_of(path), loop.mark, loop.unit)
        )
    return planned


def require_numpy() -> None:
    """Raise :class:`UsageError` where NumPy is not installed."""
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        raise UsageError('--profile needs NumPy: pip install "awp-lint[profile]"') from error


def analyse(
    session: Session, findings: Sequence[Finding], telemetry: Mapping[str, Any] | None = None
) -> ProfileOutcome:
    """Judge the findings by what a session holds. Reads the session's trace files and nothing else."""
    require_numpy()
    from awp_lint.detector.profiling import kineto

    held: dict[str, Trace] = {}

    def load(path: str) -> Trace:
        """The trace, which is often the one that was asked for last."""
        if path not in held:
            held.clear()  # before the next is read: memory is for one
            held[path] = kineto.load(path)
        return held[path]

    return _analyse(session, findings, telemetry, load)


def with_late(
    late: Dependencies | None, session: Session, findings: Sequence[Finding], telemetry: Mapping[str, Any] | None
) -> ProfileOutcome:
    """:func:`analyse` with the findings that came while the program ran."""
    if late is None:
        return analyse(session, findings, telemetry)
    more = late.of(session)
    outcome = analyse(session, [*findings, *more], telemetry)
    priced = [replace(finding, evidence=_told(finding, outcome.evidence.get(finding.id))) for finding in more]
    outcome.dependencies = [finding for finding in priced if finding.origin == "dependency"]
    outcome.extra_findings += [finding for finding in priced if finding.origin == "project"]
    outcome.notes += late.notes
    return outcome


def _told(finding: Finding, evidence: Evidence | None) -> Evidence | None:
    """What a census saw is there, whether or not the run went on for long enough to price it."""
    from awp_lint.detector.profiling import census, verdicts

    return verdicts.seen_waiting(evidence) if finding.rule == census.RULE else evidence


def _analyse(
    session: Session, findings: Sequence[Finding], telemetry: Mapping[str, Any] | None, load: Callable[[str], Trace]
) -> ProfileOutcome:
    from awp_lint.detector.profiling import census, costs, counts, diagnosis, evidence, extras, plans, units, verdicts
    from awp_lint.detector.profiling.telemetry import power_limited

    started = time.monotonic()
    kind = units.unit_kind(session)
    processes = [(p, costs.process_costs(p, kind, load)) for p in session.processes]
    judged: dict[str, Evidence] = {}
    measured: dict[str, evidence.Measured] = {}
    # An agent that failed saw nothing, which is not the same as nothing having run.
    failed = any(note.startswith("the agent could not start") for note in session.notes)
    limited = power_limited(telemetry)
    watched = bool(processes) and not (failed and not any(p.reached for p in session.processes))
    for finding in findings:
        if not watched:
            judged[finding.id] = verdicts.static_only("no Python process of the command could be observed")
        elif finding.mark is None or finding.cell is not None:
            judged[finding.id] = verdicts.static_only("a run cannot show this finding")
        else:
            found = evidence.by_place(processes, os.path.realpath(finding.path), finding.mark)
            if found:
                measured[finding.id] = replace(evidence.pool(found, kind), power_limited=limited)
                judged[finding.id] = verdicts.judge(finding, measured[finding.id])
            else:
                judged[finding.id] = verdicts.static_only("no mark was set for it in this run")
    profile = diagnosis.profile_object(session, processes, kind, telemetry)
    profile["overhead"]["tool_s"] = (profile["overhead"]["tool_s"] or 0.0) + time.monotonic() - started
    profile["load"] = session.load
    busiest = max(processes, key=lambda entry: int(entry[1].table.seen.sum()), default=None)
    profile["counts"] = counts.counts(busiest[0], kind, load) if busiest is not None else None
    profile["picture"] = _picture(processes, kind, load, findings)
    profile |= _arithmetic(processes, kind, load, telemetry, profile)
    profile["joint_saving"] = verdicts.joint_saving(findings, judged, measured)
    profile["census"] = census.profile_object(session.processes, findings)
    extra = extras.extra_findings(processes, findings, kind, profile["picture"])
    if any(isinstance(process.census, tuple) for process in session.processes):
        extra = [finding for finding in extra if finding.rule != census.RULE]  # it has the lines
    notes = [*_notes(session), *extras.device_notes(telemetry)]
    notes += plans.plan_notes([(process, analysed.facts) for process, analysed in processes], kind)
    return ProfileOutcome(judged, profile, extra, notes, session.exit_code)


def _picture(
    processes: Sequence[tuple[ProcessSession, Costs]],
    kind: str,
    load: Callable[[str], Trace],
    findings: Sequence[Finding],
) -> dict[str, Any] | None:
    """The picture of the process that the profile object speaks of."""
    from awp_lint.detector.profiling import diagnosis
    from awp_lint.detector.profiling.picture import build

    if not processes:
        return None
    process, _ = max(processes, key=lambda entry: diagnosis.work(entry[1]))
    return build.picture(process, kind, load, findings)


def _arithmetic(
    processes: Sequence[tuple[ProcessSession, Costs]],
    kind: str,
    load: Callable[[str], Trace],
    telemetry: Mapping[str, Any] | None,
    profile: Mapping[str, Any],
) -> dict[str, Any]:
    """FLOPs and MFU of the process that the profile object speaks of."""
    from awp_lint.detector.profiling import diagnosis
    from awp_lint.detector.profiling.arithmetic import unit

    if not processes:
        return {}
    process, _ = max(processes, key=lambda entry: diagnosis.work(entry[1]))
    found = unit.profile_object(process, kind, load, telemetry, profile)
    return {
        "arithmetic": found,
        "picture": unit.with_bounds(profile["picture"], found),
        "flops": found["unit"] and found["unit"]["flops"],
        "mfu": found["mfu"]["unit"],
        "mfu_prefill": found["mfu"]["prefill"],
    }


def analyse_trace(path: str, findings: Sequence[Finding]) -> ProfileOutcome:
    """Evidence from a trace file made elsewhere (``--trace``): Kineto JSON(.gz) or Nsight Systems SQLite.

    Raises :class:`UsageError` where the file cannot be read or NumPy is missing.
    """
    require_numpy()
    from awp_lint.detector.profiling import external, verdicts

    try:
        trace = external.load(path)
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from error
    session, marked = external.session_of(trace, path, findings)
    outcome = _analyse(session, marked, None, lambda _: trace)
    silent = verdicts.static_only("the trace's stacks do not show its function")
    judged = {
        f.id: external.function_level(outcome.evidence[f.id]) if f.id in outcome.evidence else silent for f in findings
    }
    return replace(outcome, evidence=judged, exit_code=None)


def _notes(session: Session) -> list[str]:
    notes = list(session.notes)
    for process in session.processes:
        if process.records.dropped:
            notes.append(f"process {process.pid}: {process.records.dropped} mark records were lost (the ring was full)")
        notes += [f"process {process.pid}: {error}" for error in process.errors]
    return list(dict.fromkeys(notes))
