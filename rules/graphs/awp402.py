"""AWP402 graph-break."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, RootCause
from awp_lint.detector.semantics.values import Certainty, Value
from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView, Level, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    IDLE,
    ancestors,
    device_certainty,
    frequency_reason,
    lower,
    often,
    reasons,
    short,
    sureness,
)
from awp_lint.rules.graphs.compiled import Compiled, compiled_code
from awp_lint.rules.graphs.hostwork import HostWork, Want, host_work
from awp_lint.rules.graphs.traced import WORDS, may_puzzle, reads_signature, step_logging, version_check, wrapped_test

_BREAKS = {
    Want.READ: "keep `{code}` on the device, or read it outside the compiled function",
    Want.TRUTH: "select with `torch.where`, or decide `{code}` before the compiled function is called",
    Want.SIZE: "keep the shape (`torch.where`, a product with the mask)",
    Want.WAIT: "wait outside the compiled function",
    Want.PRINT: "print outside the compiled function",
    Want.LOG: "log outside the compiled function",
    Want.CLOCK: "take the time outside the compiled function",
}
_ALLOWED = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops", "reorderable_logging_functions",
            "ignore_logging_functions", "ignore_logger_methods")  # fmt: skip


class GraphBreak(Rule):
    """Something in compiled code that the compiler cannot take into its graph."""

    id = "AWP402"
    name = "graph-break"
    root_cause = RootCause.RUNTIME
    confidence = Confidence.HIGH
    cost_us = 80.0
    event = Event.HOST
    words = (b"compile", *WORDS)
    nodes = (ast.Call, ast.If, ast.While, ast.IfExp, ast.Subscript)
    over = ("AWP101", "AWP102", "AWP103", "AWP104", "AWP105", "AWP106", "AWP107", "AWP108", "AWP109", "AWP111")

    summary = "compiled code asks for something that splits its graph"
    what = """
        In a function that `torch.compile` takes in (by decorator, by call, or as a callee in the same file): a read of
        a device value (`.item()`, `int(t)`, `.tolist()`), a branch on one, a boolean-mask index or another result whose
        size depends on data, `print`, logging, or a clock.
        Compiled or not: a comparison of a library's version or `inspect.signature` in code that runs in every layer of
        a step, `logger.info` or `debug` in the `forward` of a step's module, and `isinstance(self.x, …)` in a function
        that elsewhere unwraps what may be compiled (`self.x._orig_mod`).
        """
    why = """
        The compiler ends its graph there, Python runs the one statement, and a second graph follows: nothing is fused
        across the gap, every part has guards of its own, and with `mode="reduce-overhead"` each part is a CUDA graph of
        its own. A read makes the host wait as well. A version check is a cached function, which the compiler looks
        through with a warning and a guard; without a cache it parses strings in every layer.
        """
    fine = """
        - `fullgraph=True`: the compiler itself refuses, so the code is right or known to be wrong.
        - Files that set `capture_scalar_outputs`, `capture_dynamic_output_shape_ops` or the lists of logging functions.
        - Writes of attributes of `self`: the compiler takes them in. A counter makes it recompile: AWP403.
        - Callees in other files are not followed.
        """
    safety = "A recommendation only: what the value is needed for decides where it can go."
    references = (
        "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.graph_breaks_index.html",
        "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_faq.html",
    )
    bad = """
        import torch

        class Gate(torch.nn.Module):
            def __init__(self, dim: int) -> None:
                super().__init__()
                self.proj = torch.nn.Linear(dim, dim)

            @torch.compile
            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                gate = self.proj(hidden_states)
                if gate.abs().max() > 10:
                    gate = gate.clamp(-10, 10)
                return hidden_states * gate
        """
    good = """
        import torch

        class Gate(torch.nn.Module):
            def __init__(self, dim: int) -> None:
                super().__init__()
                self.proj = torch.nn.Linear(dim, dim)

            @torch.compile
            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                gate = self.proj(hidden_states).clamp(-10, 10)
                return hidden_states * gate
        """

    def concerns(self, view: FunctionView, file: FileView) -> bool:
        if compiled_code(view, file) is not None or _in_layers(view):
            return True
        return view.qualname.endswith(".forward") or "_orig_mod" in file.text

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if isinstance(node, ast.Call):
            found = self._uncompiled(node, view)
            if found is not None:
                yield found
                return
        one = compiled_code(view, file)
        if one is None or not _may_break(one, file):
            return
        for work in host_work(node, view):
            if work.want not in _BREAKS:
                continue
            idle = IDLE & ~Region.TIMED if work.want is Want.CLOCK else IDLE
            if view.regions(work.node) & idle:
                continue
            frequency = view.frequency(work.node)
            if frequency.known and not frequency.path:
                continue
            sure = {Certainty.PROVEN: Confidence.HIGH, Certainty.ASSUMED: Confidence.MEDIUM}
            confidence = sure.get(frequency.certainty, Confidence.LOW)
            if work.value is not None:
                # the graph breaks on a tensor of any device: that it is one is what has to be sure
                confidence = lower(confidence, sure.get(_tensor_certainty(work), Confidence.LOW))
            if work.want is Want.LOG:
                confidence = lower(confidence, Confidence.MEDIUM)
            yield Candidate(
                node=work.node,
                message=f"{work.text()} and splits the compiled graph {often(frequency)}".rstrip(),
                action=_BREAKS[work.want].format(code=short(work.node, 40)),
                confidence=confidence,
                frequency=frequency,
                why=(
                    f"compiled by `{one.text()}` (line {one.node.lineno})",
                    *(reasons(work.value, work.node) if work.value is not None else ()),
                    *frequency_reason(frequency),
                ),
            )

    def _uncompiled(self, node: ast.Call, view: FunctionView) -> Candidate | None:
        """What is told whether or not the file compiles anything."""
        if not may_puzzle(node):
            return None
        frequency = view.frequency(node)
        if not frequency.served or view.regions(node) & IDLE:
            return None
        code, line = short(node), wrapped_test(node, view)
        if line is not None and not _or_unwrapped(node, view):
            message = f"`{code}` is False where `{short(node.args[0])}` is compiled, which line {line} allows for"
            action, why = f"test what line {line} unwrapped", "a compiled module is an object of another class"
        elif _per_layer(frequency) and version_check(node, view):
            message = f"`{code}` compares versions {often(frequency)} and always finds the same"
            action, why = "keep the answer in a constant", "a compiler guards on the function and warns of its cache"
        elif _per_layer(frequency) and reads_signature(node, view):
            message = f"`{code}` is put together anew {often(frequency)}, some ten microseconds of Python each"
            action, why = "read it once where the object is set", "a signature does not change between calls"
        elif frequency.hot and step_logging(node, view):
            message = f"`{code}` logs {often(frequency)}, and splits the graph of whoever compiles the module"
            action, why = "leave it out, or log outside of `forward`", "compilers do not trace loggers"
        else:
            return None
        return Candidate(
            node=node,
            message=message,
            action=action,
            confidence=lower(Confidence.MEDIUM, sureness(view, node, frequency)),
            frequency=frequency,
            why=(why, *frequency_reason(frequency)),
        )


def _or_unwrapped(node: ast.AST, view: FunctionView) -> bool:
    """Whether the same test asks about what the compiled module wraps, too: ``or isinstance(m._orig_mod, T)``."""
    for parent in ancestors(view, node):
        if isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.Or):
            return "_orig_mod" in ast.unparse(parent)
        if isinstance(parent, ast.stmt):
            return False
    return False


def _in_layers(view: FunctionView) -> bool:
    return _per_layer(view.frequency(view.node))


def _per_layer(frequency: Frequency) -> bool:
    return frequency.known and Level.LAYER in frequency.path and bool({Level.STEP, Level.TOKEN} & set(frequency.path))


def _tensor_certainty(work: HostWork) -> Certainty:
    value: Value | None = work.value
    assert value is not None
    return max(device_certainty(value), value.certainty)


def _may_break(one: Compiled, file: FileView) -> bool:
    """Whether breaks pass silently: neither forbidden by ``fullgraph`` nor prepared for."""
    return one.known and one.constant("fullgraph") is not True and not any(word in file.text for word in _ALLOWED)
