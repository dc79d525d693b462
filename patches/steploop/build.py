"""From a finding on a step loop to its patch, or to the reason why there is none."""

from __future__ import annotations

import ast
import dataclasses
import os
from collections.abc import Iterable, Sequence

from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Effect, FileChange, Finding, Fix, Problem, Safety
from awp_lint.detector.project.files import find_files
from awp_lint.detector.project.reading import read_all
from awp_lint.detector.semantics.model import FunctionModel
from awp_lint.patches.steploop.calls import Loop, StepCall, step_calls
from awp_lint.patches.steploop.closure import Closure
from awp_lint.patches.steploop.mend import Mending, Unmendable, mend, wrap_call
from awp_lint.patches.steploop.placing import CACHE, CACHE_NAMES, NAME, helper_text, place_beside
from awp_lint.patches.steploop.project import Part, ProjectPart, load
from awp_lint.patches.steploop.repairs import Obstacle, Repair, RepairKind
from awp_lint.rules.common import short

RULES = ("AWP401", "AWP407")
_MOST_REASONS = 3
_MOST_FILES = 24  # with loops; more are left with the recommendation alone


def with_step_patches(
    findings: Iterable[Finding], paths: Sequence[str], settings: Settings, problems: list[Problem]
) -> list[Finding]:
    """The findings, those on step loops with the patch or with what stands in its way.

    ``paths`` are those of the scan; they are read again only where there is such a finding. A fault of ours leaves a
    finding as it is and is told in ``problems``.
    """
    findings = list(findings)
    chosen = [finding for finding in findings if _may_have_one(finding)]
    if not chosen:
        return findings
    found, _ = find_files(paths, settings, os.getcwd())
    files, _ = read_all(found)
    parts: dict[str, ProjectPart | None] = {}
    done: dict[int, Finding] = {}
    entered: dict[str, Finding] = {}  # functions that run in a captured step, and whose finding that is
    for finding in chosen:
        try:
            if finding.path not in parts and len(parts) < _MOST_FILES:
                parts[finding.path] = load(finding.path, files, settings)
            project = parts.get(finding.path)
            if project is not None:
                done[id(finding)] = _patched(finding, project, settings, entered)
        except Exception as error:  # as for rules: it must not cost the user the findings
            problems.append(Problem(finding.path, f"the step-loop patch failed: {error!r}", finding.span.line))
    for finding in chosen:
        around = entered.get(f"{finding.path}:{finding.function}")
        if around is not None and around is not finding and id(finding) in done:
            place = f"{around.path}:{around.span.line}"
            done[id(finding)] = _explained(finding, [f"it runs in the step that the patch at {place} captures"])
    return [done.get(id(finding), finding) for finding in findings]


def _may_have_one(finding: Finding) -> bool:
    if finding.rule not in RULES or finding.cell is not None or finding.origin != "project":
        return False
    return finding.fix is not None and not finding.fix.edits


def _patched(finding: Finding, project: ProjectPart, settings: Settings, entered: dict[str, Finding]) -> Finding:
    place = _loop_of(finding, project)
    if place is None:
        return finding
    view, part, loop = place
    accepted: list[StepCall] = []
    repairs: dict[int, Repair] = {}
    refused: list[str] = []
    inside: set[str] = set()
    random = False
    for step in step_calls(loop, view, project):
        name = short(step.call.func, 40)
        if step.refusal:
            refused.append(f"`{name}`: {step.refusal}")
            continue
        closure = Closure(project, settings.target)
        closure.enter(step.target, dict(step.roles))
        if closure.obstacles:
            refused.append(f"`{name}`: {_reasons(closure.obstacles)}")
            continue
        accepted.append(step)
        inside |= closure.entered
        repairs |= closure.repairs
        random = random or closure.random
    if not accepted:
        return _explained(finding, refused or ["the code below the step is not seen in this project"])
    try:
        fix = _fix(finding, view, part, project, accepted, repairs, random)
    except Unmendable as error:
        return _explained(finding, [str(error)])
    if fix is None:
        return finding
    entered.update(dict.fromkeys(inside, finding))
    why = tuple(f"left as it is: {reason}" for reason in refused)
    return dataclasses.replace(finding, fix=fix, why=(*finding.why, *why))


def _loop_of(finding: Finding, project: ProjectPart) -> tuple[FunctionModel, Part, Loop] | None:
    """The outermost loop of its function around a finding, from the finding's own loop outwards."""
    part = project.parts[finding.path]
    for view in part.model.functions():
        if view.qualname != finding.function:
            continue
        for loop in view.nodes(ast.For, ast.While):
            assert isinstance(loop, ast.For | ast.While)
            first, last = loop.lineno, loop.end_lineno or loop.lineno
            if first == finding.span.line or (finding.rule != "AWP401" and first < finding.span.line <= last):
                return view, part, loop
    return None


def _reasons(obstacles: Sequence[Obstacle]) -> str:
    more = len(obstacles) - _MOST_REASONS
    text = "; ".join(map(str, obstacles[:_MOST_REASONS]))
    return f"{text}; and {more} more" if more > 0 else text


def _explained(finding: Finding, reasons: Sequence[str]) -> Finding:
    """The finding with what stands in the way of a patch: in its reasons, and in short in its recommendation."""
    assert finding.fix is not None
    why = tuple(f"not captured by a patch: {reason}" for reason in reasons)
    title = f"{finding.fix.title}; in the way of a patch: {reasons[0]}"
    return dataclasses.replace(
        finding, why=(*finding.why, *why), fix=dataclasses.replace(finding.fix, title=title, safety=Safety.MANUAL)
    )


def _fix(
    finding: Finding,
    view: FunctionModel,
    part: Part,
    project: ProjectPart,
    steps: Sequence[StepCall],
    repairs: dict[int, Repair],
    random: bool,
) -> Fix | None:
    helper = place_beside(part, project)
    cache = place_beside(part, project, CACHE)
    if helper is None or cache is None:
        return None
    mending = Mending()
    for step in steps:
        wrap_call(step, view, part, mending)
    for repair in repairs.values():
        mend(repair, mending)
    changes = []
    for path, edits in mending.edits.items():
        names = mending.names[path]
        imports = (
            *cache.imports(names & CACHE_NAMES),
            *helper.imports(names - CACHE_NAMES),
            *mending.imports.get(path, ()),
        )
        changes.append(FileChange(path, tuple(edits), imports))
    own = next(change for change in changes if change.path == finding.path)
    others = tuple(change for change in changes if change is not own)
    kinds = {repair.kind for repair in repairs.values()}
    if not helper.exists:
        others = (*others, FileChange(helper.path, created=helper_text(NAME, helper.module)))
    if RepairKind.GROW in kinds and not cache.exists:
        others = (*others, FileChange(cache.path, created=helper_text(CACHE, helper.module)))
    run = ", ".join(f"`{short(step.call.func, 40)}`" for step in steps)
    requires = [
        "nothing that the step keeps on the device is replaced while it runs (weights, buffers); "
        "caches are known by the addresses of their tensors",
        *(repair_text(repair) for repair in repairs.values()),
    ]
    effects = [Effect.MEMORY, Effect.TIMING]
    if kinds & {RepairKind.OPEN_END, RepairKind.ATTEND}:
        effects.append(Effect.NUMERICS)
    if random:
        effects.append(Effect.RNG)
    return Fix(
        title=f"run {run} as a CUDA graph, captured once a shape",
        safety=Safety.UNSAFE,
        edits=own.edits,
        imports=own.imports,
        effects=tuple(effects),
        requires=tuple(requires),
        others=others,
    )


def repair_text(repair: Repair) -> str:
    """A repair's condition for a person."""
    line = getattr(repair.node, "lineno", 0)
    words = {
        RepairKind.GUARD: "no step passes what this check forbids: in a graph it is not made",
        RepairKind.ATTEND: "attention over a buffer with a mask sums in another order than over the exact length",
        RepairKind.OPEN_END: "the mask hides what lies beyond the newest position: in a graph the whole buffer is read",
    }.get(repair.kind, repair.kind.value)
    return f"{repair.view.path}:{line}: {words}"
