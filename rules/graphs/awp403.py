"""AWP403 recompile-trigger."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, RootCause
from awp_lint.detector.semantics.values import Certainty, Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import IDLE, frequency_reason, hot_frequency, lower, often, short, sureness
from awp_lint.rules.graphs.compiled import Compiled, compiled_callee, compiled_code, compiled_in
from awp_lint.rules.graphs.growth import grown_in
from awp_lint.rules.graphs.traced import is_buffer, meant_to_be_compiled, replaced_tensor
from awp_lint.rules.memo import says

_LOOPS = (LoopKind.TOKENS, LoopKind.STEPS)
_ALLOWED = re.compile("mark_dynamic|allow_unspec_int_on_nn_module")  # by who knows of it


class RecompileTrigger(Rule):
    """Compiled code whose inputs change in a way that it was specialised for."""

    id = "AWP403"
    name = "recompile-trigger"
    root_cause = RootCause.RUNTIME
    confidence = Confidence.MEDIUM
    cost_us = 20000.0
    event = Event.HOST
    words = (b"compile", b".to(", b".cuda(", b".float(")
    nodes = (ast.Call, ast.AugAssign, ast.Assign)

    summary = "compiled code is called with values that change at every step, and is compiled or recorded again"
    what = """
        A number on `self` that compiled code of a module counts up (`self.calls += 1`); and, in a loop over tokens or
        steps, a Python number of the loop or a growing tensor handed to a function compiled with `dynamic=False` or in
        a mode that records CUDA graphs (`reduce-overhead`, `max-autotune`). And, compiled or not, a tensor that the
        `forward` of a step's module or a logits processor puts in its own place (`self.freqs =
        self.freqs.to(x.device)`).
        """
    why = """
        Numbers on a module are constants of the graph, so each call finds its guards broken and compiles again, up to
        the limit of eight; then the function runs uncompiled. `dynamic=False` does the same with sizes and numbers. In
        the modes that record CUDA graphs each new size or number is a recording of its own. A plain tensor of a module
        is guarded by device and type: its replacement compiles again.
        Measured with torch 2.13: a counted attribute compiles at each of 6 calls; a changing `int`, `float` or size in
        the default mode twice and never again; a replaced tensor twice.
        """
    fine = """
        - The default mode: the second value makes the compiler treat the number or size as a variable. Shown at low
          confidence, since the two compilations cost seconds all the same.
        - Buffers, which move with the module and need no replacement; state that the steps hand on in an attribute.
        - A tensor put in its own place in a file that no compiler is spoken of in, and in a logits processor: the move
          finds nothing to do from the second call on. Shown at low confidence.
        - `dynamic=True` without graphs, `mark_dynamic` in the file, tensors in the place of numbers.
        """
    safety = """
        A recommendation only: pass a 0-d tensor in the place of the number, keep the counter outside the module's
        forward, write into a tensor of fixed size in the place of a growing one.
        No diff, since the callee has to take the tensor, too.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.recompilation.html",
        "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_dynamic_shapes.html",
    )
    bad = """
        import torch

        class Decoder(torch.nn.Module):
            def __init__(self, dim: int) -> None:
                super().__init__()
                self.proj = torch.nn.Linear(dim, dim)
                self.calls = 0

            @torch.compile
            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                self.calls += 1
                return self.proj(hidden_states)
        """
    good = """
        import torch

        class Decoder(torch.nn.Module):
            def __init__(self, dim: int) -> None:
                super().__init__()
                self.proj = torch.nn.Linear(dim, dim)
                self.calls = 0

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                self.calls += 1
                return self._step(hidden_states)

            @torch.compile
            def _step(self, hidden_states: torch.Tensor) -> torch.Tensor:
                return self.proj(hidden_states)
        """

    def concerns(self, view: FunctionView, file: FileView) -> bool:
        if not compiled_in(file) and not view.qualname.endswith((".forward", ".__call__")):
            return False
        return not says(file, _ALLOWED)

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if isinstance(node, ast.Assign):
            found = self._replaced(node, view, file)
        elif isinstance(node, ast.AugAssign):
            found = self._counter(node, view, file)
        else:
            assert isinstance(node, ast.Call)
            found = self._call(node, view, file)
        if found is not None:
            yield found

    def _counter(self, node: ast.AugAssign, view: FunctionView, file: FileView) -> Candidate | None:
        target = node.target
        if not (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"):
            return None
        if "torch.nn.Module" not in view.class_bases or view.value(target).kind is not Kind.SCALAR:
            return None
        if view.value(node.value).kind is not Kind.SCALAR:
            return None
        one = compiled_code(view, file)
        frequency = view.frequency(node)
        if one is None or view.regions(node) & IDLE or (frequency.known and not frequency.path):
            return None
        name = ast.unparse(target)
        return Candidate(
            node=node,
            message=f"`{name}` is a constant of the compiled graph: counting it up compiles again at every call",
            action=f"count `{name}` outside the compiled code",
            confidence=lower(self.confidence, _sure(frequency.certainty)),
            frequency=frequency,
            why=(f"compiled by `{one.text()}` (line {one.node.lineno})", *frequency_reason(frequency)),
        )

    def _replaced(self, node: ast.Assign, view: FunctionView, file: FileView) -> Candidate | None:
        name = replaced_tensor(node, view)
        frequency = hot_frequency(view, node) if name is not None else None
        if name is None or frequency is None or is_buffer(name, view, file):
            return None
        confidence = lower(self.confidence, sureness(view, node, frequency))
        if not meant_to_be_compiled(view, file):
            confidence = Confidence.LOW  # the move itself finds nothing to do from the second call on
        instead = "make it on the device in the constructor"
        if "torch.nn.Module" in view.class_bases:
            instead = f"register `{name}` as a buffer (`persistent=False`), which moves along"
        return Candidate(
            node=node,
            message=f"`{name}` is put in its own place {often(frequency)}: what is compiled of it is compiled again",
            action=f"use a local variable, or {instead}",
            confidence=confidence,
            frequency=frequency,
            why=(
                f"`{name}` is a plain tensor of the object, on which compiled code guards",
                *frequency_reason(frequency),
            ),
        )

    def _call(self, node: ast.Call, view: FunctionView, file: FileView) -> Candidate | None:
        loop = next((one for one in view.loops(node) if view.loop_kind(one) in _LOOPS), None)
        if not isinstance(loop, ast.For | ast.While) or view.regions(node) & IDLE:
            return None
        one = compiled_callee(node, view, file)
        if one is None or not one.known:
            return None
        moving = _moving(node, loop, view)
        if moving is None:
            return None
        argument, grows = moving
        frequency = view.frequency(node)
        if frequency.known and not frequency.path:
            return None
        outcome = _outcome(one)
        if outcome is None:
            return None
        words, level = outcome
        what = f"`{short(argument, 40)}` {'grows' if grows else 'changes'}"
        better = "a tensor of fixed size" if grows else "a 0-d tensor"
        return Candidate(
            node=node,
            message=f"{what} {often(frequency)}, so `{short(node.func, 40)}` {words}".replace("  ", " "),
            action=f"pass {better}",
            confidence=lower(level, _sure(frequency.certainty)),
            frequency=frequency,
            why=(f"compiled by `{one.text()}` (line {one.node.lineno})", *frequency_reason(frequency)),
        )


def _outcome(one: Compiled) -> tuple[str, Confidence] | None:
    """What a changing number or size does to a compiled function, and how sure that is."""
    dynamic = one.constant("dynamic")
    if one.records_graphs:
        return "records a new CUDA graph for each", Confidence.MEDIUM
    if dynamic is False:
        return "is compiled again for each, up to the limit", Confidence.MEDIUM
    return None if dynamic is True else ("is compiled twice", Confidence.LOW)


def _sure(certainty: Certainty) -> Confidence:
    return {Certainty.PROVEN: Confidence.HIGH, Certainty.ASSUMED: Confidence.MEDIUM}.get(certainty, Confidence.LOW)


def _moving(call: ast.Call, loop: ast.For | ast.While, view: FunctionView) -> tuple[ast.expr, bool] | None:
    """The first argument that changes from pass to pass, and whether it is a tensor that grows."""
    written = view.written_in(loop)
    grown = grown_in(loop)
    for argument in (*call.args, *(k.value for k in call.keywords)):
        if isinstance(argument, ast.Name) and argument.id in grown:
            return argument, True
        names = {n.id for n in ast.walk(argument) if isinstance(n, ast.Name)}
        if not names & written or isinstance(argument, ast.Starred):
            continue
        value = view.value(argument)
        if value.kind is Kind.SCALAR and value.certainty is not Certainty.UNKNOWN:
            return argument, False
    return None
