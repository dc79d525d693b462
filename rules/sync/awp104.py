"""AWP104 device-scalar-bound."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Event, Fix, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    callee,
    frequency_reason,
    host_named,
    maybe_device,
    method,
    often,
    reasons,
    short,
    sureness,
)
from awp_lint.rules.plain import no_tensor
from awp_lint.rules.sync.contexts import SIZED, SIZED_METHODS
from awp_lint.rules.sync.reads import iterated_from, read_frequency

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition


class DeviceScalarBound(Rule):
    """A device scalar where Python or PyTorch needs a size or a bound."""

    id = "AWP104"
    name = "device-scalar-bound"
    root_cause = RootCause.RUNTIME
    cost_us = 60.0
    event = Event.WAIT
    words = (b":", b"range(", b"arange(")
    nodes = (ast.Slice, ast.Call)
    over = ("AWP102",)
    calls = SIZED_METHODS | {"range", *(name.rpartition(".")[2] for name in SIZED)}
    repeated = True
    doubted = True

    summary = "a device scalar is used as a slice bound, a size or a range"
    what = """
        A tensor on the accelerator as the bound of a slice, the argument of `range()`, or a size given to `arange`,
        `zeros`, `view`, `expand`, `repeat` and the like, in code that runs for every step, token, layer or item.
        """
    why = """
        Shapes live on the host, so the host waits for the value (an implicit `.item()`); the shape then changes with
        the data, which forbids capture and makes compiled code recompile.
        """
    fine = """
        - Bounds from shapes, Python numbers, host tensors and lists.
        - A tensor as an index (`x[i]`), which gathers on the device.
        - Once a request and in set-up.
        """
    safety = """
        Unsafe: where the loop goes over the lengths, or takes them by index, one `.tolist()` before it reads all; a
        scalar that serves as a number everywhere is read once, where it is computed. Other spellings get a
        recommendation: compare positions with the length on the device (`torch.arange(n) < length`) and mask.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
        "huggingface/diffusers#13564 lengths of samples read in a loop",
    )
    bad = """
        import torch

        class Transformer(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
                batch_size = hidden_states.shape[0]
                lengths = attention_mask.sum(dim=1)
                mask = torch.zeros_like(attention_mask)
                for i in range(batch_size):
                    mask[i, : lengths[i]] = 1
                return hidden_states * mask.unsqueeze(-1)
        """
    good = """
        import torch

        class Transformer(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
                lengths = attention_mask.sum(dim=1, keepdim=True)
                positions = torch.arange(attention_mask.shape[1], device=attention_mask.device)
                mask = positions < lengths
                return hidden_states * mask.unsqueeze(-1)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        for bound in _bounds(node, view):
            if no_tensor(bound, view):
                continue
            value = view.value(bound)
            if not maybe_device(value) or (value.rank or 0) > 0 or host_named(bound):
                continue
            frequency = read_frequency(view, bound)
            if frequency is None:
                continue
            confidence = sureness(view, bound, frequency, value)
            yield Candidate(
                node=bound,
                message=f"`{short(bound)}` is on the device: as a size or bound it waits {often(frequency)}".rstrip(),
                action=_action(bound, view),
                confidence=confidence,
                frequency=frequency,
                why=(*reasons(value, bound), *frequency_reason(frequency)),
                covers=tuple(part for part in ast.walk(node) if isinstance(part, ast.Compare)),
            )
            return  # one wait explains the statement; the others are read together with it

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.sync.hostlists import one_read

        assert isinstance(candidate.node, ast.expr)
        return one_read(candidate.node, definition)


def _bounds(node: ast.AST, view: FunctionView) -> Iterator[ast.expr]:
    if isinstance(node, ast.Slice):
        for bound in (node.lower, node.upper, node.step):
            if bound is not None:
                yield bound
        return
    assert isinstance(node, ast.Call)
    name = callee(node)
    if isinstance(node.func, ast.Name) and name == "range":
        yield from _plain(node.args)
        return
    if all(no_tensor(arg, view) for arg in (*_plain(node.args), *(k.value for k in node.keywords))):
        return  # whatever is called
    dotted = view.qualified(node.func) or ""
    if dotted in SIZED:
        yield from _plain(node.args[:1] if name in ("full", "eye") else node.args)
        yield from (k.value for k in node.keywords if k.arg in ("size", "end", "start", "step", "steps"))
        return
    found = method(node)
    if found is not None and name in SIZED_METHODS and view.value(found[0]).is_tensor:
        yield from _plain(node.args)


def _plain(args: list[ast.expr]) -> Iterator[ast.expr]:
    """The arguments, and the items of tuples among them."""
    for arg in args:
        if isinstance(arg, ast.Tuple | ast.List):
            yield from _plain(arg.elts)
        elif not isinstance(arg, ast.Starred):
            yield arg


def _action(bound: ast.expr, view: FunctionView) -> str:
    source = iterated_from(view, bound)
    if source is not None:
        return f"read all of `{short(source, 40)}` with one `.tolist()` before the loop"
    if isinstance(bound, ast.Subscript):
        return f"read `{short(bound.value, 40)}` once with `.tolist()`, or mask by comparing positions with it"
    return f"keep `{short(bound, 40)}` as a Python number, or mask by comparing positions with it"
