"""Run a traced program again without a finding: what would a unit take then?

The host's time between calls is the traced one less what the profiler adds an event, at the host's usual speed; device
work keeps its duration; a wait ends when the work it waits for has ended.

Hosts drift: the same step can take half as long again a second later. The profiler's cost an event is therefore read
from the fastest windows with and without it, and each slice's host speed is then set so that its step takes as long as
the unprofiled one. A statement that works rather than waits is set to its own time in the marks-only windows, within
what a trace can be wrong by: the profiler is in the way of its caches too. That makes the step's time a weak test; a
saving is believed only where the unedited replay also reproduces what was not fitted: the gap ratio, and the time of a
statement that waits. (Where launches hide behind the device, the waits say what the profiler costs; then the gap ratio
alone remains.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from awp_lint.detector.profiling.program import CALL_WEIGHT, Program, Work, along

GATE_STEP = 0.05  # relative error of the step's time
GATE_GAP = 0.05  # absolute error of the gap ratio
GATE_MARK = 0.10  # relative error of a statement's time, or …
GATE_MARK_MS = 0.05  # … absolute, whichever is larger
REPEATS = 3
MAX_COST_NS = 5_000.0  # an operator costs the profiler less than this on any host
USUAL_COST_NS = 1_500.0  # where the host's time does not show in the step
CALIBRATED = 0.15  # of a saving, and …
CALIBRATED_STEP = 0.005  # … of a step: so far a prediction may be off
MAX_PACE = 2.5  # a statement is not slower (or faster) than this beside its time in the trace
WAITING = 0.2  # of a statement's time: above, its time is the device's
MAX_SCALE = 4.0  # a host is not slower (or faster) than this beside its usual speed
MATTERS = 0.10  # of the unit: what it must change by before something can be read from it
LEAST = 0.1  # of a stretch of host time that remains however much the profiler is said to have added
_ROUNDS = 3  # of fitting the profiler's cost and the host's speed by turns
EVENT_NS = 1_000  # from the end of one stream's work to the start of another's that waits for it


@dataclass(frozen=True, slots=True)
class Edit:
    """A changed program: steps whose host time is scaled, calls whose own time, wait or work is dropped or replaced."""

    lead: dict[int, float] = field(default_factory=dict)  # step → factor on the host time before it
    busy: dict[int, int] = field(default_factory=dict)  # step → ns
    free: frozenset[int] = frozenset()  # steps that no longer wait
    work: dict[int, tuple[Work, ...]] = field(default_factory=dict)
    less: dict[int, int] = field(default_factory=dict)  # step → ns that the host time before it is shorter by


@dataclass(frozen=True, slots=True)
class Outcome:
    """One replay. ``unit_ms`` is the time a unit adds once the program is under way; ``marks`` holds the duration of
    every execution by its row, in ms, and ``gap`` the share of the time that the device idles."""

    unit_ms: float
    gap: float
    marks: dict[int, float]


NOTHING = Edit()


@dataclass(frozen=True, slots=True)
class Host:
    """What the profiler adds an operator, ns, and what the host's remaining time is multiplied by.

    ``paces``: by step, the share of the host time before it that lies in a statement, and what that share and the
    call's own time are multiplied by instead.
    """

    cost_ns: float = 0.0
    scale: float = 1.0
    paces: Mapping[int, tuple[float, float]] = field(default_factory=dict)


def run(program: Program, host: Host, edit: Edit = NOTHING) -> Outcome:
    """Replay a program on a host.

    The units are run once and then twice more, and only what the two add is counted: an emptying queue at the end is in
    both figures, an overlap of one unit with the next is not lost.
    """
    steps = list(zip(*edited(program, host, edit), strict=True))
    answer = program.answer
    now = 0.0
    ends = [0.0]
    lanes: dict[int, float] = {}
    begins: list[float] = []
    first = worked = worked_first = 0.0
    for turn in range(REPEATS):
        begins = []
        for lead, busy, back, work in steps:  # the loop that all the time goes into: no calls where a test will do
            begun = now + lead
            begins.append(begun)
            now = begun + busy
            for lane, took, latency, behind, other in work:
                start = begun + latency
                if lane in lanes and lanes[lane] + behind > start:
                    start = lanes[lane] + behind
                if 0 < other < len(ends) and ends[-other] + EVENT_NS > start:
                    start = ends[-other] + EVENT_NS
                end = lanes[lane] = start + took
                ends.append(end)
                worked += took
            if 0 <= back < len(ends) and ends[-1 - back] + answer > now:
                now = ends[-1 - back] + answer
        if turn == 0:
            first, worked_first = max(now, *lanes.values(), 0.0), worked
    total = max(now, *lanes.values(), 0.0) - first
    opened = {row: begins[step] for step, row, opens in program.edges if opens}
    marks = {row: (begins[step] - opened[row]) / 1e6 for step, row, opens in program.edges if not opens}
    gap = max(0.0, 1.0 - (worked - worked_first) / total) if total > 0 else 0.0
    return Outcome(total / ((REPEATS - 1) * program.units) / 1e6, gap, marks)


def edited(
    program: Program, host: Host, edit: Edit
) -> tuple[list[float], list[float], list[int], list[tuple[Work, ...]]]:
    """Lead, own time, target and work of every step, as the host and the edit have them."""
    cost, scale = host.cost_ns, host.scale
    lead = [
        scale * max(before - cost * events, LEAST * before)
        for before, events in zip(program.lead, program.events, strict=True)
    ]
    busy = [
        scale * max(own - CALL_WEIGHT * cost, LEAST * own) if call >= 0 else 0.0
        for own, call in zip(program.busy, program.call.tolist(), strict=True)
    ]
    target, work = list(program.target), list(program.work)
    for step, (share, pace) in host.paces.items():
        lead[step] *= 1 - share + share * pace / scale
        busy[step] *= pace / scale
        if along(program, step):
            lane, took, latency, behind, back = program.work[step][0]
            work[step] = ((lane, round(took * pace), round(latency * pace), behind, back),)
    for step, factor in edit.lead.items():
        lead[step] *= factor
    for step, shorter in edit.less.items():
        lead[step] = max(lead[step] - shorter, 0.0)
    for step, own in edit.busy.items():
        busy[step] = own
    for step in edit.free:
        target[step] = -1
    for step, items in edit.work.items():
        work[step] = items
    return lead, busy, target, work


def fit_cost(program: Program, unit_ms: float, fastest_ms: float, known: Sequence[Statement]) -> float:
    """The profiler's cost an event, in ns, within what is possible: with it a program takes ``fastest_ms`` a unit.

    Where launches hide behind the device the unit's time says nothing of them. How long the host waits for the device
    then does: with it a step takes ``unit_ms``, and the waits among the ``known`` statements what was measured.
    """
    dear, free = run(program, Host(MAX_COST_NS)), run(program, Host())
    if free.unit_ms - dear.unit_ms >= MATTERS * fastest_ms:
        return _solve(lambda cost: -run(program, Host(cost)).unit_ms, -fastest_ms, 0.0, MAX_COST_NS)
    matters = MATTERS * unit_ms
    waits = [one for one in known if _took(dear, [one]) - _took(free, [one]) >= matters * len(one.rows)]
    if not waits:
        return USUAL_COST_NS
    measured, host = sum(one.measured_ms * len(one.rows) for one in waits), Host(USUAL_COST_NS)
    for _ in range(_ROUNDS):
        scaled = fit_scale(program, host, unit_ms)

        def waited(cost: float, scaled: Host = scaled) -> float:
            return _took(run(program, replace(scaled, cost_ns=cost)), waits)

        host = replace(scaled, cost_ns=_solve(waited, measured, 0.0, MAX_COST_NS))
    return host.cost_ns


def _took(outcome: Outcome, statements: Sequence[Statement]) -> float:
    """What statements take in a replay, all executions together, in ms."""
    return sum(outcome.marks[row] for one in statements for row in one.rows)


def fit_scale(program: Program, host: Host, unit_ms: float) -> Host:
    """The host at the speed with which a program takes ``unit_ms`` a unit, within what is possible.

    Its usual speed where the host hardly matters to the unit's time: then nothing can be read from it.
    """
    slow, fast = (run(program, replace(host, scale=s)).unit_ms for s in (1.5, 0.67))
    if slow - fast < MATTERS * unit_ms:
        return replace(host, scale=1.0)
    least = 1 / MAX_SCALE
    return replace(
        host, scale=_solve(lambda s: run(program, replace(host, scale=s)).unit_ms, unit_ms, least, MAX_SCALE)
    )


@dataclass(frozen=True, slots=True)
class Statement:
    """A mark's executions in a program: their rows, the steps in them, and of the host time before each step the share
    that lies in them; ``measured_ms`` is one execution's time without the profiler."""

    rows: tuple[int, ...]
    steps: tuple[int, ...]
    leads: dict[int, float]
    measured_ms: float


def paced(program: Program, host: Host, statements: Sequence[Statement]) -> Host:
    """The host with the pace of each statement that works rather than waits: so that it takes what was measured.

    The profiler's cost and the host's speed are those of the whole step; a copy that the caches served, or launches by
    another way, went at their own.
    """
    marks = run(program, host).marks
    lead, busy, _, _ = edited(program, host, NOTHING)
    paces: dict[int, tuple[float, float]] = {}
    for one in statements:
        took = float(np.mean([marks[row] for row in one.rows]))
        working = sum(lead[step] * share for step, share in one.leads.items()) + sum(busy[step] for step in one.steps)
        working /= 1e6 * len(one.rows)
        waiting = max(took - working, 0.0)
        if working <= 0 or waiting > WAITING * took:
            continue
        pace = host.scale * (one.measured_ms - waiting) / working
        if 1 / MAX_PACE <= pace <= MAX_PACE:
            paces |= {step: (one.leads.get(step, 0.0), pace) for step in {*one.steps, *one.leads}}
    return replace(host, paces=paces)


def _solve(rising: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """Where a rising, nearly straight function has the wanted value; the nearer end where it nowhere has."""
    at_low, at_high = rising(low) - wanted, rising(high) - wanted
    if at_low >= 0:
        return low
    if at_high <= 0:
        return high
    place = low
    for _ in range(8):
        place = low - at_low * (high - low) / (at_high - at_low)
        value = rising(place) - wanted
        if abs(value) < 0.001 * abs(wanted):
            break
        if value < 0:
            low, at_low = place, value
            at_high /= 2  # else one end would stay for ever
        else:
            high, at_high = place, value
            at_low /= 2
    return place


@dataclass(frozen=True, slots=True)
class Model:
    """Fitted programs of a process. ``hosts`` has for each program the fitted host and its lower and upper variant;
    ``errors`` names what the gate refuses (empty: it passed); ``marks_ms`` the mean replayed duration of one execution
    of each mark."""

    programs: tuple[Program, ...]
    hosts: tuple[tuple[Host, Host, Host], ...]
    errors: tuple[str, ...]
    marks_ms: dict[int, float]

    @property
    def passed(self) -> bool:
        """Whether savings may be read from it."""
        return not self.errors

    def reproduces(self, mark: int, measured_ms: float) -> bool:
        """Whether the replay gives a statement the time that it has without the profiler."""
        replayed = self.marks_ms.get(mark)
        return replayed is not None and abs(replayed - measured_ms) <= max(GATE_MARK * measured_ms, GATE_MARK_MS)


def fit(
    programs: Sequence[Program],
    unit_ms: float,
    fastest_ms: float,
    gap_ratio: float | None,
    mark_of: Callable[[Program], dict[int, int]],
    statements: Callable[[Program], Sequence[Statement]],
) -> Model | None:
    """Fit the profiler's cost and each slice's host speed, and apply the gate; None with fewer than two slices.

    ``fastest_ms`` is the unit's time in the fastest unprofiled window; ``mark_of`` gives each execution row's mark,
    ``statements`` what is known of marks without others inside.
    """
    if len(programs) < 2:
        return None
    knowns = [statements(program) for program in programs]
    quickest = int(np.argmin([run(program, Host()).unit_ms for program in programs]))
    cost = fit_cost(programs[quickest], unit_ms, fastest_ms, knowns[quickest])
    hosts = []
    for program, known in zip(programs, knowns, strict=True):
        variants = []
        for tried in (cost, 0.5 * cost, min(1.5 * cost, MAX_COST_NS)):
            host = fit_scale(program, Host(tried), unit_ms)
            variants.append(fit_scale(program, paced(program, host, known), unit_ms) if known else host)
        hosts.append((variants[0], variants[1], variants[2]))
    outcomes = [run(program, host[0]) for program, host in zip(programs, hosts, strict=True)]
    errors = []
    replayed = float(np.mean([o.unit_ms for o in outcomes]))
    if abs(replayed - unit_ms) > GATE_STEP * unit_ms:
        errors.append(f"the replay takes {replayed:.3f} ms a unit where {unit_ms:.3f} ms were measured")
    gap = float(np.mean([o.gap for o in outcomes]))
    if gap_ratio is not None:
        # What was measured of the device is the trace's, in which transfers through the host's hands take longer.
        shorter = [_shorter_ms(program, host[0]) for program, host in zip(programs, hosts, strict=True)]
        gap_ratio += float(np.mean(shorter)) / unit_ms
        if abs(gap - gap_ratio) > GATE_GAP:
            errors.append(f"the replay's gap ratio is {gap:.2f} where {gap_ratio:.2f} was measured")
    durations: dict[int, list[float]] = {}
    for program, outcome in zip(programs, outcomes, strict=True):
        marks = mark_of(program)
        for row, ms in outcome.marks.items():
            durations.setdefault(marks[row], []).append(ms)
    means = {mark: float(np.mean(ms)) for mark, ms in durations.items()}
    return Model(tuple(programs), tuple(hosts), tuple(errors), means)


def _shorter_ms(program: Program, host: Host) -> float:
    """What the device works less in a unit than in the trace, since statements have their own pace; ms."""
    before, after = (
        sum(item[1] for items in work for item in items) for work in (program.work, edited(program, host, NOTHING)[3])
    )
    return (before - after) / 1e6 / program.units


@dataclass(frozen=True, slots=True)
class Saving:
    """What a unit gains, ms: the mean and a 95 % interval over slices, the profiler's cost and the edit's own range."""

    ms: float
    low_ms: float
    high_ms: float

    def times(self, factor: float) -> Saving:
        """Of a statement that runs more or less often than in the slices."""
        return Saving(self.ms * factor, self.low_ms * factor, self.high_ms * factor)


def saving(model: Model, edits: Callable[[int, Program], tuple[Edit, Edit, Edit]], draws: int = 1000) -> Saving:
    """Replay every slice with the careful, the plain and the generous form of an edit.

    ``edits(number, program)`` gives the three. The interval runs from the careful form's low end to the generous form's
    high end, and on either side of the point at least as far as two of three predictions were off at most, measured by
    ``benchmarks/replay`` (27 of 42; all 42 ranges meet the interval of what was measured).
    """
    gains: list[list[float]] = []
    unit_ms = 0.0
    for number, (program, hosts) in enumerate(zip(model.programs, model.hosts, strict=True)):
        careful, plain, generous = edits(number, program)
        base = [run(program, host).unit_ms for host in hosts]
        unit_ms += base[0]
        least = min(base[n] - run(program, hosts[n], careful).unit_ms for n in (1, 2))
        most = max(base[n] - run(program, hosts[n], generous).unit_ms for n in (1, 2))
        gains.append([base[0] - run(program, hosts[0], plain).unit_ms, least, most])
    table = np.array(gains)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(table), (draws, len(table)))
    means = table[rows].mean(axis=1)
    point = float(table[:, 0].mean())
    low, high = float(np.percentile(means[:, 1], 2.5)), float(np.percentile(means[:, 2], 97.5))
    margin = CALIBRATED * abs(point) + CALIBRATED_STEP * unit_ms / len(gains)
    return Saving(point, min(low, point - margin), max(high, point + margin))
