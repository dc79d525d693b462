"""Who calls a function, as far as this file shows, whether gradients are off there, and float32 on purpose."""

from __future__ import annotations

import ast
import re

from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView, Region
from awp_lint.rules.common import ancestors, argument, callee, whole_program
from awp_lint.rules.memo import says

#: The whole program, or the model's parameters, record no gradients.
OFF_EVERYWHERE = re.compile(
    r"set_grad_enabled\(\s*(mode\s*=\s*)?False|requires_grad_\(\s*False|\.requires_grad\s*=\s*False|disable_torch_init"
    r"|inference_mode\(\)\.__enter__|no_grad\(\)\.__enter__|_set_grad_enabled"
)
TRAINS = re.compile(
    r"\.backward\(|\boptim(izer)?\.(step|zero_grad|Adam|SGD)|torch\.autograd\.grad\(|Trainer\(|GradScaler"
)

#: Names of what is there to compute in float32.
_FLOAT32 = re.compile(r"(float|fp|f)_?32|full_?precision|upcast|high_?precision", re.IGNORECASE)


def wants_float32(view: FunctionView) -> bool:
    """Whether a class or function is by its name there to compute in float32."""
    return _FLOAT32.search(view.qualname) is not None


def float32_on_purpose(view: FunctionView, node: ast.AST) -> bool:
    """Whether somebody wants float32 here: by the name of the class or function, or below a disabled autocast."""
    return wants_float32(view) or any(
        isinstance(parent, ast.With | ast.AsyncWith) and any(_disables(item.context_expr) for item in parent.items)
        for parent in ancestors(view, node)
    )


def _disables(context: ast.expr) -> bool:
    if not isinstance(context, ast.Call) or "autocast" not in callee(context):
        return False
    enabled = argument(context, None, "enabled")
    return isinstance(enabled, ast.Constant) and enabled.value is False


def no_gradients(file: FileView) -> bool:
    """Whether the file switches gradients off for all it does, or trains."""
    return says(
        file, OFF_EVERYWHERE, "grad_enabled", "requires_grad_(", ".requires_grad", "disable_torch_init", ").__enter__"
    ) or trains(file)


def trains(file: FileView) -> bool:
    """Whether the file trains something."""
    return says(file, TRAINS, ".backward(", "optim.", "optimizer.", ".grad(", "Trainer(", "GradScaler")


def callers_off(view: FunctionView, frequency: Frequency, file: FileView) -> bool | None:
    """Whether a caller switches gradients off: one of the chain, or one in this file, however far up.

    None where the chain leaves this file.
    """
    unknown = False
    for frame in frequency.chain:
        if frame.path != view.path:
            unknown = unknown or frame.path.endswith(".py")
            continue
        for other in file.functions():
            if other.qualname == frame.function and _off_at(other, frame.line):
                return True
    if _called_under_off(view.qualname.rpartition(".")[2], file):
        return True
    return None if unknown else False


def _called_under_off(name: str, file: FileView) -> bool:
    """Whether a function of this name is called with gradients off, directly or through functions of this file."""
    seen, pending = {name}, [name]
    while pending:
        wanted = pending.pop()
        for view in file.functions():
            for call in view.nodes(ast.Call):
                if not isinstance(call, ast.Call) or callee(call) != wanted:
                    continue
                if view.regions(call) & Region.INFERENCE:
                    return True
                caller = view.qualname.rpartition(".")[2]
                if caller not in seen:
                    seen.add(caller)
                    pending.append(caller)
    return False


def _off_at(view: FunctionView, line: int) -> bool:
    for call in view.nodes(ast.Call):
        if getattr(call, "lineno", 0) == line and view.regions(call) & Region.INFERENCE:
            return True
    return bool(view.regions(view.node) & Region.INFERENCE)


def called_off(view: FunctionView, call: ast.Call, file: FileView) -> bool | None:
    """Whether what is called switches gradients off by itself; None where it may do so further down: where it is in
    another file, and others than the program's own functions may run it."""
    own = whole_program(view.frequency(call))
    names = view.targets(call)
    found = {
        f"{other.module}.{other.qualname}" if other.module else other.qualname: other for other in file.functions()
    }
    unknown = False
    for name in names:
        other = found.get(name)
        if other is None:
            if own and view.switches_off(name):
                return True
            unknown = unknown or not own
        elif other.regions(other.node) & Region.INFERENCE:
            return True
    return None if unknown else False
