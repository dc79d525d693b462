"""AWP811 debug-switches."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import ancestors, argument, callee, short
from awp_lint.rules.edits import remove
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.serving.enginerule import reason_given
from awp_lint.rules.serving.environment import DEBUG, MINOR, debug_switch

#: Calls with a first argument that switches debugging on, to what they do.
_CALLS = {
    "torch.autograd.set_detect_anomaly": "keeps a traceback for every operation",
    "torch.use_deterministic_algorithms": "replaces fast kernels by slow ones",
    "torch.cuda.set_sync_debug_mode": "checks every operation for waits",
}
_ASSIGNMENTS = {"torch.backends.cudnn.deterministic": "keeps cuDNN from its fastest kernels"}
_OFF = (False, 0, "0", "default")


class DebugSwitches(Rule):
    """Debugging aids left on in code that serves."""

    id = "AWP811"
    name = "debug-switches"
    root_cause = RootCause.SYSTEM
    confidence = Confidence.MEDIUM
    cost_us = 2000.0
    event = Event.NONE
    anywhere = True
    words = (
        *(name.encode() for name in DEBUG),
        *(b"set_detect_anomaly", b"use_deterministic_algorithms", b"set_sync_debug_mode", b"cudnn.deterministic"),
    )
    nodes = (ast.Assign, ast.Call)
    calls = frozenset({"setdefault", "putenv", "update", *(name.rpartition(".")[2] for name in _CALLS)})

    summary = "a debugging switch is left on"
    what = """
        `CUDA_LAUNCH_BLOCKING=1` and other variables of that kind, `set_detect_anomaly(True)`,
        `use_deterministic_algorithms(True)`, `set_sync_debug_mode(...)`, in Python, shell scripts, Dockerfiles, Compose
        and Kubernetes files.
        """
    why = """
        They trade speed for a better error message: the host waits for every kernel, checks every operation, or takes
        slow kernels where fast ones exist.
        """
    fine = """
        - Below a debug flag, in tests, training and benchmarks, in functions that by their name set a reproducible
          mode.
        - A comment beside it that gives a reason: shown at low confidence. `cudnn.deterministic` costs little and is
          shown at low confidence always, as are variables that cost only some programs (`PYTORCH_JIT`).
        """
    safety = """
        Unsafe in name (timing, numerics for the deterministic modes): the statement is deleted.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
        "https://docs.pytorch.org/docs/stable/notes/randomness.html",
    )
    bad = """
        import os
        import torch

        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
        model = torch.nn.Linear(8, 8).to("cuda").eval()
        """
    good = """
        import os
        import torch

        if os.environ.get("DEBUG"):
            torch.autograd.set_detect_anomaly(os.environ["DEBUG"] == "2")
        model = torch.nn.Linear(8, 8).to("cuda").eval()
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Assign | ast.Call)
        found = _switch(node, view)
        if found is None:
            return
        if view.regions(node) & (Region.TEST | Region.TRAINING | Region.TIMED | Region.DEBUG | Region.ERROR):
            return
        effect, minor = found
        name = view.qualname.lower()
        deliberate = any(word in name for word in ("determin", "reproduc", "seed", "debug"))
        low = minor or deliberate or reason_given(file.text, node.lineno) or _conditional(node, view)
        yield Candidate(
            node=node,
            message=f"`{short(node)}` {effect}",
            action="remove it from code that serves",
            confidence=Confidence.LOW if low else self.confidence,
            frequency=view.frequency(node),
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        view = definition.view
        statement = view.statement(candidate.node)
        parent = view.parent(statement)
        block = next((b for f in ("body", "orelse") if statement in (b := getattr(parent, f, [])) and len(b) > 1), None)
        whole = statement is candidate.node or (isinstance(statement, ast.Expr) and statement.value is candidate.node)
        if not whole or block is None:
            return None
        edit = remove(statement, definition)
        if edit is None:
            return None
        return Fix(
            title="remove the debugging switch",
            safety=Safety.UNSAFE,
            edits=(edit,),
            effects=(Effect.TIMING, Effect.NUMERICS),
        )


def _switch(node: ast.Assign | ast.Call, view: FunctionView) -> tuple[str, bool] | None:
    """What a statement or call switches on, and whether it is of little weight."""
    if isinstance(node, ast.Assign):
        target, value = node.targets[0], node.value
        if not isinstance(value, ast.Constant):
            return None
        if isinstance(target, ast.Subscript) and view.qualified(target.value) == "os.environ":
            return _variable(target.slice, value)
        effect = _ASSIGNMENTS.get(view.qualified(target) or "")
        return (effect, True) if effect is not None and value.value is True else None
    dotted = view.qualified(node.func) or ""
    if dotted in ("os.environ.setdefault", "os.putenv") and len(node.args) == 2:
        return _variable(node.args[0], node.args[1])
    if callee(node) == "update" and dotted == "os.environ.update" and node.args and isinstance(node.args[0], ast.Dict):
        pairs = zip(node.args[0].keys, node.args[0].values, strict=True)
        return next((v for k, value in pairs if k is not None and (v := _variable(k, value)) is not None), None)
    effect = _CALLS.get(dotted)
    if effect is None:
        return None
    first = node.args[0] if node.args else argument(node, None, "mode")
    if not isinstance(first, ast.Constant) or first.value in _OFF:
        return None
    return effect, False


def _variable(name: ast.expr, value: ast.expr) -> tuple[str, bool] | None:
    if not (isinstance(name, ast.Constant) and isinstance(value, ast.Constant)):
        return None
    effect = debug_switch(str(name.value), str(value.value))
    return None if effect is None else (effect, str(name.value) in MINOR)


def _conditional(node: ast.AST, view: FunctionView) -> bool:
    """Whether a test decides: an option of the user's, most likely."""
    child = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.If) and child is not parent.test and not view.regions(child) & Region.MAIN:
            return True
        child = parent
    return False
