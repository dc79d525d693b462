"""Denoising loops in which the scheduler has to look up on the device which step it is asked for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind
from awp_lint.rules.common import callee

#: Schedulers of diffusers that search their table of timesteps, a device tensor, unless they are told the first index.
_SEARCHING = frozenset({
    "FlowMatchEulerDiscreteScheduler", "FlowMatchHeunDiscreteScheduler", "FlowMatchLCMScheduler", "LCMScheduler",
    "EulerDiscreteScheduler", "EulerAncestralDiscreteScheduler",
    "HeunDiscreteScheduler", "LMSDiscreteScheduler", "KDPM2DiscreteScheduler",
    "KDPM2AncestralDiscreteScheduler", "DPMSolverMultistepScheduler", "DPMSolverSinglestepScheduler",
    "DPMSolverSDEScheduler", "DEISMultistepScheduler", "UniPCMultistepScheduler", "SASolverScheduler",
    "EDMEulerScheduler", "EDMDPMSolverMultistepScheduler", "CosineDPMSolverMultistepScheduler", "TCDScheduler",
})  # fmt: skip
_ANNOTATED = re.compile(r"\b(\w*scheduler)\s*:\s*[\"']?(?:\w+\.)*(\w+)")


@dataclass(frozen=True, slots=True)
class Lookup:
    """A loop whose ``scheduler.step`` searches, and the class that does."""

    loop: ast.For
    step: ast.Call
    scheduler: ast.expr
    cls: str


def lookup_in_loop(loop: ast.For, view: FunctionView, file: FileView) -> Lookup | None:
    """The first ``scheduler.step(...)`` of a loop over timesteps in a file that never sets a begin index."""
    if "set_begin_index" in file.text or view.loop_kind(loop) is not LoopKind.STEPS:
        return None
    for call in _steps(loop, view):
        assert isinstance(call.func, ast.Attribute)
        scheduler = call.func.value
        cls = (view.value(scheduler).cls or "").rpartition(".")[2] or _annotated(scheduler, file)
        if cls in _SEARCHING:
            return Lookup(loop, call, scheduler, cls)
    return None


def _steps(loop: ast.For, view: FunctionView) -> Iterator[ast.Call]:
    for statement in loop.body:
        for part in ast.walk(statement):
            if isinstance(part, ast.Call) and callee(part) == "step" and isinstance(part.func, ast.Attribute):
                owner = part.func.value
                name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                if name.endswith("scheduler") and len(part.args) >= 2 and view.parent(part) is not None:
                    yield part


def _annotated(scheduler: ast.expr, file: FileView) -> str:
    """The one class that the file annotates a scheduler of this name with, "" where there are none or several."""
    name = scheduler.attr if isinstance(scheduler, ast.Attribute) else getattr(scheduler, "id", "")
    found = {cls for known, cls in _ANNOTATED.findall(file.text) if known == name and "Scheduler" in cls}
    return found.pop() if len(found) == 1 else ""
