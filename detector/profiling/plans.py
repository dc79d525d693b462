"""AWP009 once more: attention whose cuDNN plan is built anew for every shape that the process has not seen.

On devices of compute capability 9.0 and 10.0 recent PyTorch hands half-precision attention to cuDNN first. It makes a
plan for every new combination of shapes and strides: tens of milliseconds to half a second on the host, where the call
takes some fifty microseconds once the plan is there. A cache that grows by a token, and batches of every length, bring
a new shape with nearly every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from awp_lint.detector.finding import Finding
from awp_lint.detector.profiling.recompiles import made_anew
from awp_lint.detector.profiling.session import ProcessSession
from awp_lint.detector.profiling.timeline import Cat, Ints, Trace

if TYPE_CHECKING:
    from awp_lint.detector.profiling.costs import TraceFacts

Int32s = npt.NDArray[np.int32]

#: The operator whose time on the host holds the building of its plan.
OPERATOR = "aten::_scaled_dot_product_cudnn_attention"
#: Usual calls take 0.05 to 0.25 ms on the host under the profiler, plans 33 to 730 ms (H200, torch 2.11).
_BUILT_NS = 5_000_000
_REMEDY = (
    "take cuDNN out of the choice before serving (torch.backends.cuda.enable_cudnn_sdp(False), or "
    "TORCH_CUDNN_SDPA_DEPRIORITIZED=1 in the environment), or keep to a few shapes: a cache of fixed length with a "
    "mask, batches padded to few lengths"
)


@dataclass(frozen=True, slots=True)
class Build:
    """One call that built a plan: the innermost mark around it (-1: none), and its time on the host."""

    mark: int
    ms: float


def builds(trace: Trace, innermost: Callable[[Ints, Ints], Ints], marks: Int32s) -> list[Build]:
    """Plans that were built in a trace. ``innermost(thread, time)`` gives the row of ``marks`` that is open at each
    moment, -1 for none.

    Time in calls of the runtime is left out: a call that finds the device's queue full waits in one.
    """
    names = [number for number, name in enumerate(trace.names) if name == OPERATOR]
    if not names:
        return []
    rows = np.flatnonzero(np.isin(trace.name, names) & (trace.category == Cat.CPU_OP))
    found = []
    for row in rows[trace.end[rows] - trace.start[rows] >= _BUILT_NS].tolist():
        start, end, thread = trace.start[row], trace.end[row], trace.thread[row]
        first, last = np.searchsorted(trace.start[trace.calls], [start, end])
        inside = trace.calls[first:last]
        inside = inside[trace.thread[inside] == thread]
        took = int(end - start - (np.minimum(trace.end[inside], end) - trace.start[inside]).sum())
        if took >= _BUILT_NS:
            around = int(innermost(np.array([thread]), np.array([start]))[0])
            found.append(Build(int(marks[around]) if around >= 0 else -1, took / 1e6))
    return found


def attention_plans(processes: Sequence[tuple[ProcessSession, TraceFacts]], kind: str) -> list[Finding]:
    """A finding for each process that builds plans in its trace windows: at the mark that all of them lie in, else at
    the loop that counts its units, else at the program."""
    found: list[Finding] = []
    for process, facts in processes:
        place = _place(process, facts, kind) if facts.builds else None
        if place is None:
            continue
        longest = max(build.ms for build in facts.builds)
        why = (f"the operator of cuDNN's attention took up to {longest:.0f} ms on the host, outside of any launch",)
        price = (len(facts.builds), _took_ms(facts), facts.traced_ms, "building plans")
        one = made_anew(place, _message(facts), why, _REMEDY, price, "attention")
        if all(one.id != other.id for other in found):  # of another process
            found.append(one)
    return found


def plan_notes(processes: Sequence[tuple[ProcessSession, TraceFacts]], kind: str) -> list[str]:
    """The same where nothing tells the place, as of a trace that somebody else recorded."""
    told = [facts for process, facts in processes if facts.builds and _place(process, facts, kind) is None]
    return [f"AWP009 recompiles: {_message(facts)}; {_REMEDY}" for facts in told]


def _message(facts: TraceFacts) -> str:
    count = len(facts.builds)
    return (
        f"`scaled_dot_product_attention` builds {count} plan{'s' if count > 1 else ''} of cuDNN while it serves, "
        f"{_took_ms(facts):.0f} ms in all: one for each new combination of shapes"
    )


def _took_ms(facts: TraceFacts) -> float:
    return sum(build.ms for build in facts.builds)


def _place(process: ProcessSession, facts: TraceFacts, kind: str) -> tuple[str, int, str] | None:
    around = {build.mark for build in facts.builds}
    marks = [mark for mark in process.marks if around == {mark.index}]
    marks += [mark for mark in process.marks if mark.unit == kind and mark.index in process.reached]
    if marks:
        return marks[0].path, marks[0].mark.line, marks[0].mark.function
    program = next((word for word in process.argv if word.endswith(".py")), None)
    return (program, 1, "") if program is not None else None
