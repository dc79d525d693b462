"""AWP107 device-print."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Edit, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    callee,
    frequency_reason,
    hot_frequency,
    maybe_device,
    often,
    reasons,
    short,
    sureness,
)

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_LEVELS = frozenset({"debug", "info", "warning", "warn", "error", "critical", "exception", "log", "warning_once"})
_LOGGERS = re.compile(r"(^|_)(log(ger|ging)?|LOG(GER)?|warnings)$")


class DevicePrint(Rule):
    """A device tensor printed, logged or formatted on a hot path."""

    id = "AWP107"
    name = "device-print"
    root_cause = RootCause.RUNTIME
    cost_us = 300.0
    event = Event.WAIT
    words = (b"print(", b".debug(", b".info(", b".warning", b".warn(", b".error(", b".log(", b".critical(")
    nodes = (ast.Call,)
    calls = _LEVELS | {"print", "format"}
    repeated = True
    doubted = True
    over = ("AWP101",)

    summary = "a device tensor is printed, logged or formatted on a hot path"
    what = """
        `print`, a logger's methods or `warnings.warn` with a tensor that lives on the accelerator among the arguments
        or inside an f-string, in code that runs for every step, token, layer or item.
        """
    why = """
        The text needs the values: the host waits for the device, copies the tensor and formats it. An f-string does so
        even where the log level is off, since it is built before the logger is asked.
        """
    fine = """
        - Shapes, types, devices and Python numbers.
        - Below a debug flag or a check of the log level; in error paths, tests and training.
        """
    safety = """
        Unsafe: `debug` and `info` calls of the module's own standard logger go below `isEnabledFor`, so that nothing is
        formatted where nobody wants it. Otherwise a recommendation: delete it, or log every few hundred steps.
        """
    references = (
        "https://docs.python.org/3/howto/logging.html#optimization",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
    )
    bad = """
        import torch

        class Pipeline:
            def __init__(self, unet: torch.nn.Module):
                self.unet = unet

            def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
                latents = latents.cuda()
                for step in range(num_inference_steps):
                    latents = self.unet(latents, step) + latents
                    print(f"step {step}: mean {latents.mean()}")
                return latents
        """
    good = """
        import torch

        class Pipeline:
            def __init__(self, unet: torch.nn.Module):
                self.unet = unet

            def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
                latents = latents.cuda()
                for step in range(num_inference_steps):
                    latents = self.unet(latents, step) + latents
                    print(f"step {step}: shape {latents.shape}")
                return latents
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        lazy = _lazy_arguments(node)
        if lazy is None:
            return
        for part in _formatted(node, lazy):
            value = view.value(part)
            if not maybe_device(value):
                continue
            frequency = hot_frequency(view, node)
            if frequency is None:
                return
            confidence = sureness(view, node, frequency, value)
            yield Candidate(
                node=node,
                message=f"`{callee(node)}` formats `{short(part, 40)}` and waits for the device {often(frequency)}",
                action=f"delete it, or log `{short(part, 40)}` every few hundred steps only",
                confidence=confidence,
                frequency=frequency,
                why=(*reasons(value, part), *frequency_reason(frequency)),
                covers=tuple(ast.walk(node)),
            )
            return

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.edits import insert_before, starts_line

        call = candidate.node
        statement = definition.view.parent(call)
        if (
            not isinstance(call, ast.Call)
            or not isinstance(statement, ast.Expr)
            or not starts_line(statement, definition)
        ):
            return None
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("debug", "info"):
            return None
        if statement.lineno != statement.end_lineno or not _standard(call.func.value, definition.file):
            return None
        level = f"logging.{call.func.attr.upper()}"
        above = insert_before(statement, [f"if {definition.text(call.func.value)}.isEnabledFor({level}):"], definition)
        if above is None:
            return None
        start, _ = definition.range(statement)
        unit = "\t" if definition.indent(statement).startswith("\t") else "    "
        return Fix(
            title=f"format only where `{call.func.attr}` messages are wanted",
            safety=Safety.UNSAFE,
            edits=(above, Edit(start, start, unit)),
            effects=(Effect.TIMING,),
        )


def _standard(logger: ast.expr, file: FileView) -> bool:
    """Whether a logger is the module's own one of the standard library, by its assignment."""
    if not isinstance(logger, ast.Name) or file.imports.get("logging") != "logging":
        return False
    for statement in file.tree.body:
        if isinstance(statement, ast.Assign) and [ast.unparse(t) for t in statement.targets] == [logger.id]:
            return isinstance(statement.value, ast.Call) and ast.unparse(statement.value.func) == "logging.getLogger"
    return False


def _lazy_arguments(call: ast.Call) -> bool | None:
    """Whether the call formats its arguments only when the level is on; None where it prints and logs nothing."""
    if isinstance(call.func, ast.Name):
        return False if call.func.id == "print" else None
    if not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr == "format":
        return False if isinstance(call.func.value, ast.Constant) else None
    if call.func.attr not in _LEVELS:
        return None
    owner = call.func.value
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    if not _LOGGERS.search(name):
        return None
    return call.func.attr == "debug"


def _formatted(call: ast.Call, lazy: bool) -> Iterator[ast.expr]:
    """The expressions that are turned into text; arguments of ``debug`` usually are not."""
    for arg in call.args:
        if isinstance(arg, ast.JoinedStr):
            for part in ast.walk(arg):
                if isinstance(part, ast.FormattedValue):
                    yield part.value
        elif isinstance(arg, ast.Call) and callee(arg) == "format":
            yield from arg.args
        elif isinstance(arg, ast.BinOp) and isinstance(arg.op, ast.Mod) and isinstance(arg.left, ast.Constant):
            yield from arg.right.elts if isinstance(arg.right, ast.Tuple) else [arg.right]
        elif not lazy and not isinstance(arg, ast.Starred):
            yield arg
