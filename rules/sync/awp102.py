"""AWP102 device-truth."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Event, Fix, RootCause
from awp_lint.detector.semantics.regions import test_region
from awp_lint.detector.semantics.values import Kind, Value
from awp_lint.detector.semantics.view import FileView, FunctionView, Level
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    IDLE,
    callee,
    frequency_reason,
    host_named,
    lower,
    maybe_device,
    often,
    reasons,
    short,
    sureness,
)
from awp_lint.rules.doubts import default_none
from awp_lint.rules.plain import no_tensor
from awp_lint.rules.sync.compressing import asks_before_cutting
from awp_lint.rules.sync.reads import read_frequency

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_ASKERS = frozenset({"isinstance", "hasattr", "callable"})  # what they answer never is a tensor


class DeviceTruth(Rule):
    """A device tensor where Python wants a truth value."""

    id = "AWP102"
    name = "device-truth"
    root_cause = RootCause.RUNTIME
    cost_us = 60.0
    event = Event.WAIT
    words = (b"if ", b"while ", b"bool(", b" and ", b" or ", b"not ")
    nodes = (ast.If, ast.While, ast.IfExp, ast.comprehension, ast.UnaryOp, ast.BoolOp, ast.Call)
    calls = frozenset({"bool"})
    repeated = True
    doubted = True

    summary = "Python asks for the truth of a device tensor on a hot path"
    what = """
        `if`, `while`, a conditional expression, `and`, `or`, `not`, `in` or `bool()` on a tensor that lives on the
        accelerator, in code that runs for every step, token, layer or item. A comparison of tensors is a tensor.
        """
    why = """
        Python needs a plain `bool`, so the host waits until the device has computed the value, and the device idles
        until the host goes on. The branch also breaks a compiled graph and forbids capture.
        """
    fine = """
        - Tests of `None`, shapes, dtypes, devices and Python flags.
        - Host tensors.
        - Asserts, debug and error paths, tests, training; fallback branches at low confidence only.
        """
    safety = """
        Unsafe, and only where the branch is understood: a branch that computes new values of local tensors, or returns
        one of two, becomes `torch.where`, a test around nothing but masked writes with that mask is dropped, an error
        check in a loop moves behind it, a test for the end of a loop is made at every 8th pass, elements that a loop
        tests one by one are read before it, all at once with `.tolist()` and what they are compared with by `.item()`.
        Each fix says what has to hold. Other branches get a recommendation: decide once a request and pass a Python
        flag down.
        """
    references = (
        "huggingface/transformers#39870 branches on device values inside layers",
        "vllm-project/vllm-omni#1105 a branch on a device scalar in each step of a pipeline",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
    )
    bad = """
        import torch

        class Router(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    if attention_mask.all():
                        hidden_states = layer(hidden_states)
                    else:
                        hidden_states = layer(hidden_states, attention_mask)
                return hidden_states
        """
    good = """
        import torch

        class Router(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(
                self, hidden_states: torch.Tensor, attention_mask: torch.Tensor, padded: bool
            ) -> torch.Tensor:
                mask = attention_mask if padded else None
                for layer in self.layers:
                    hidden_states = layer(hidden_states, mask)
                return hidden_states
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        for tested in _tested(node, view):
            if no_tensor(tested, view):
                continue
            value = _truth_value(tested, view)
            if value is None or host_named(tested) or _of_several_types(tested, view):
                continue
            if asks_before_cutting(tested, view):
                continue  # it saves copying what mostly stays whole
            frequency = read_frequency(view, tested)
            if frequency is None:
                continue
            confidence = sureness(view, tested, frequency, value)
            if isinstance(tested, ast.Name) and tested.id in default_none(view):
                confidence = lower(confidence, Confidence.LOW)  # it asks whether something was given
            yield Candidate(
                node=tested,
                message=f"`{short(tested)}` is on the device: asking for its truth waits {often(frequency)}".rstrip(),
                action=_action(node, tested, frequency.path),
                confidence=confidence,
                frequency=frequency,
                why=(*reasons(value, tested), *frequency_reason(frequency)),
            )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.batching.penalty import at_once
        from awp_lint.rules.sync.branches import without_branch
        from awp_lint.rules.sync.hostlists import one_read

        node = candidate.node
        assert isinstance(node, ast.expr)
        return at_once(node, definition) or without_branch(node, definition) or one_read(node, definition)


def _tested(node: ast.AST, view: FunctionView) -> Iterator[ast.expr]:
    """The expressions whose truth a node asks for. Every such place belongs to one node only."""
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield from _parts(node.test)
    elif isinstance(node, ast.comprehension):
        for test in node.ifs:
            yield from _parts(test)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and not _inside_test(node, view):
        yield from _parts(node.operand)
    elif isinstance(node, ast.BoolOp) and not _inside_test(node, view):
        for part in node.values[:-1]:
            yield from _parts(part)
    elif isinstance(node, ast.Call):
        named_bool = isinstance(node.func, ast.Name) and node.func.id == "bool"
        if named_bool and len(node.args) == 1 and not node.keywords:
            yield node.args[0]


def _parts(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _parts(part)
            if test_region(part, isinstance(test.op, ast.And)) & IDLE:
                return  # `self.training and …`: what follows is asked in training only
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _parts(test.operand)
    else:
        yield test


def _of_several_types(node: ast.expr, view: FunctionView) -> bool:
    """Whether the code asks for the type of a name: what is empty then may be a list."""
    return isinstance(node, ast.Name) and any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "isinstance"
        and isinstance(call.args[0] if call.args else None, ast.Name)
        and ast.unparse(call.args[0]) == node.id
        for call in view.nodes(ast.Call)
    )


def _inside_test(node: ast.AST, view: FunctionView) -> bool:
    """Whether an enclosing test, ``not`` or ``and``/``or`` already asks for the truth of this node."""
    parent = view.parent(node)
    if isinstance(parent, ast.BoolOp):
        return True
    if isinstance(parent, ast.UnaryOp):
        return isinstance(parent.op, ast.Not)
    if isinstance(parent, ast.If | ast.While | ast.IfExp):
        return node is parent.test
    return isinstance(parent, ast.comprehension) and any(node is test for test in parent.ifs)


def _truth_value(tested: ast.expr, view: FunctionView) -> Value | None:
    """The device tensor whose truth is asked for, None where there is none."""
    if isinstance(tested, ast.Compare) and isinstance(tested.ops[0], ast.Is | ast.IsNot):
        return None
    if isinstance(tested, ast.Call) and isinstance(tested.func, ast.Name) and tested.func.id in _ASKERS:
        return None
    if isinstance(tested, ast.Compare) and isinstance(tested.ops[0], ast.In | ast.NotIn):
        if _by_hash(tested.comparators[0], view):
            return None
        container = view.value(tested.comparators[0])
        if maybe_device(container):
            return container
        left = view.value(tested.left)
        if maybe_device(left) and container.kind in (Kind.SEQUENCE, Kind.UNKNOWN):
            return left
        return None
    value = view.value(tested)
    return value if maybe_device(value) else None


def _by_hash(container: ast.expr, view: FunctionView) -> bool:
    """Whether it is asked for by its hash, or among texts: nothing is compared on the device."""
    if isinstance(container, ast.Name):
        bound = [
            s.value for s in view.assignments(container.id) if isinstance(s, ast.Assign | ast.AnnAssign) and s.value
        ]
        return bool(bound) and all(not isinstance(made, ast.Name) and _by_hash(made, view) for made in bound)
    if isinstance(container, ast.Call):
        return callee(container) in ("set", "frozenset", "dict", "keys")
    if isinstance(container, ast.List | ast.Tuple):
        parts = container.elts
        return bool(parts) and all(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in parts)
    return isinstance(container, ast.Set | ast.Dict | ast.SetComp | ast.DictComp)


_FINITE = frozenset({"isfinite", "isinf", "isnan"})


def _action(node: ast.AST, tested: ast.expr, path: tuple[Level, ...]) -> str:
    if not isinstance(node, ast.While) and _FINITE & {callee(n) for n in ast.walk(tested) if isinstance(n, ast.Call)}:
        return "mend without asking: `torch.clamp` and `torch.nan_to_num` leave finite values as they are"
    if isinstance(node, ast.While) or (path and path[-1] is Level.TOKEN):
        return f"check `{short(tested, 40)}` every few steps, or together with the token that is read anyway"
    if path and path[-1] is Level.LAYER:
        return f"decide `{short(tested, 40)}` once above the layers and pass a Python flag down"
    return f"select with `torch.where`, or decide `{short(tested, 40)}` once outside the hot path"
