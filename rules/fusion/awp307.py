"""AWP307 redundant-copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, MarkKind, RootCause, Safety
from awp_lint.detector.semantics.values import Device, Kind
from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import frequency_reason, judge, lower, method, often, opaque, reasons, short
from awp_lint.rules.flow import binding, same
from awp_lint.rules.fusion.context import place
from awp_lint.rules.fusion.transposes import transposed_back
from awp_lint.rules.nodemap import Definition

#: Calls that give the same result when repeated at once.
_IDEMPOTENT = frozenset({
    "float", "half", "bfloat16", "double", "int", "long", "bool", "contiguous", "detach", "clone", "cpu", "cuda", "to",
    "type", "type_as",
})  # fmt: skip
_JOINING = frozenset({"cat", "concat", "concatenate", "stack", "hstack", "vstack"})


@dataclass(frozen=True, slots=True)
class _Copy:
    """A call to take out: its receiver takes its place."""

    drop: ast.Call
    safe: bool
    what: str
    action: str
    apart: bool = False  # the first call stands in another statement
    kept: bool = False  # to be taken out with others, by hand


class RedundantCopy(Rule):
    """The same copy or cast twice in a row, or a copy of what is copied anyway."""

    id = "AWP307"
    name = "redundant-copy"
    root_cause = RootCause.COMPUTE
    cost_us = 8.0
    event = Event.COPY
    mark = MarkKind.STATEMENT
    words = (
        b".transpose(",
        b".clone(",
        b".contiguous(",
        b".detach(",
        b".float(",
        b".to(",
        b".half(",
        b".bfloat16(",
        b".type(",
        b".cuda(",
    )
    nodes = (ast.Call, ast.BinOp)
    calls = frozenset({*_IDEMPOTENT, *_JOINING, "copy_", "transpose"})

    summary = "a tensor is copied or cast twice where once is enough"
    what = """
        The same call twice (`.float().float()`, `.contiguous().contiguous()`, `.to(x).to(x)`, `.clone().clone()`), in a
        row or in two statements of one block, and a `.clone()` whose only use copies or reads the tensor anyway: as an
        item of `torch.cat` or `torch.stack`, as the source of `copy_`, as an operand of arithmetic. And a tensor that
        is transposed, flattened by `reshape` (which copies what is transposed) and whose result is transposed back.
        """
    why = """
        A copy reads and writes the whole tensor and costs a launch; where nothing is copied, the call itself still
        takes a microsecond or two of the host's time, in every layer of every step.
        """
    fine = """
        - A cast pair that rounds on purpose (`.half().float()`).
        - `.contiguous()` after `transpose` before `view`; `.detach().clone()`.
        - The same cast of a name that an earlier statement cast: it returns its argument. Shown at low confidence.
        - A clone that is kept, returned or written to; one that is made once a request: low confidence.
        - A clone of a part of what the function writes to in place, unless gradients are off there: low confidence.
        - Transposes around a layer that wants its input that way (convolutions, recurrent layers, attention).
        - `.to(device).to(dtype)`: two different steps, which one call could do; not reported.
        """
    safety = """
        Safe for identical adjacent calls other than `clone`: the second returns its argument. Taking out a `clone` is
        unsafe only in name (`aliasing`): the copy could not be told from the original where it is used.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.contiguous.html",
    )
    bad = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
                query = query.transpose(1, 2).contiguous().contiguous()
                return torch.matmul(query, key.transpose(-1, -2))
        """
    good = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
                query = query.transpose(1, 2).contiguous()
                return torch.matmul(query, key.transpose(-1, -2))
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.expr)
        for found in _copies(node, view):
            inner = method(found.drop)
            assert inner is not None
            value = view.value(inner[0])
            if value.kind not in (Kind.TENSOR, Kind.UNKNOWN) or value.device is Device.HOST:
                continue
            counted = place(view, node)
            if counted is None:
                continue
            frequency, cap = counted
            yield Candidate(
                node=node,
                message=f"{found.what} {often(frequency)}".rstrip(),
                action=found.action,
                confidence=lower(cap, _confidence(found, frequency, judge(frequency, value))),
                frequency=frequency,
                why=(*reasons(value, inner[0]), *frequency_reason(frequency)),
                data=found,
            )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        found = candidate.data
        if not isinstance(found, _Copy) or found.kept:
            return None
        inner = method(found.drop)
        assert inner is not None
        definition.node(found.drop)
        return Fix(
            title=f"drop the {'second ' if found.safe else ''}`.{inner[1]}(…)`",
            safety=Safety.SAFE if found.safe else Safety.UNSAFE,
            edits=(definition.replace(found.drop, definition.text(inner[0])),),
            effects=() if found.safe else (Effect.ALIASING,),
        )


def _confidence(found: _Copy, frequency: Frequency, judged: Confidence) -> Confidence:
    """Repeated calls are plain to see; only how often they run may be unknown."""
    if found.apart:
        return Confidence.LOW  # a call that returns its argument, and copies nothing
    if not found.safe and frequency.known and not frequency.hot:
        return Confidence.LOW  # one copy, beside all that a request does
    if found.safe and frequency.known:
        return Confidence.HIGH if judged is Confidence.HIGH else Confidence.MEDIUM
    return judged


def _copies(node: ast.expr, view: FunctionView) -> Iterator[_Copy]:
    if isinstance(node, ast.BinOp):
        for part in (node.left, node.right):
            clone = _clone(part)
            if clone is not None and view.value(part).is_tensor:
                yield _Copy(clone, False, f"`{short(part)}` is copied only to be read", "use the tensor itself")
        return
    assert isinstance(node, ast.Call)
    repeated = _repeated(node, view)
    if repeated is not None:
        name, line = repeated
        copies = "copies the tensor twice" if name == "clone" else "makes the same call twice"
        if line is not None:
            copies = f"repeats the `.{name}(…)` of line {line}"
        yield _Copy(node, name != "clone", f"`{short(node)}` {copies}", f"drop one `.{name}(…)`", line is not None)
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "transpose":
        back = transposed_back(node, view)
        if back is not None:
            copied, line = back
            what = f"`{short(node)}` is undone in line {line}, and `{short(copied)}` copies the tensor in between"
            yield _Copy(node, False, what, "work along the last dimension without transposing", kept=True)
        return
    parts: list[ast.expr] = []
    if name in _JOINING and node.args and isinstance(node.args[0], ast.List | ast.Tuple):
        parts = node.args[0].elts if view.qualified(node.func) == f"torch.{name}" else []
    elif name == "copy_":
        parts = node.args[:1]
    for part in parts:
        clone = _clone(part)
        if clone is not None:
            what = f"`{short(part)}` is copied and then copied again by `{name}`"
            yield _Copy(clone, False, what, "pass the tensor itself")


def _clone(node: ast.expr) -> ast.Call | None:
    """The node itself where it is `x.clone()`."""
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return None
    found = method(node)
    return node if found is not None and found[1] == "clone" else None


def _repeated(node: ast.Call, view: FunctionView) -> tuple[str, int | None] | None:
    """The method that a call repeats with the same arguments, and the line of the first call where it stands apart."""
    outer = method(node)
    if outer is None or outer[1] not in _IDEMPOTENT or opaque(node):
        return None
    source, line = outer[0], None
    if isinstance(source, ast.Name):
        bound = binding(source, view)
        if bound is None or outer[1] == "clone" or view.parent(bound[1]) is not view.parent(view.statement(node)):
            return None  # under another branch the second call may be there for the first one's absence
        source, line = bound[0], bound[1].lineno
    inner = method(source) if isinstance(source, ast.Call) else None
    if inner is None or inner[1] != outer[1] or not isinstance(source, ast.Call) or opaque(source):
        return None
    if outer[1] == "to" and not (node.args or node.keywords):
        return None
    if any(k.arg in ("copy", "memory_format") for k in node.keywords):
        return None
    mine, others = _arguments(node), _arguments(source)
    if [name for name, _ in mine] != [name for name, _ in others]:
        return None
    for (_, a), (_, b) in zip(mine, others, strict=True):
        if any(isinstance(part, ast.Call | ast.NamedExpr | ast.Await | ast.Yield) for part in ast.walk(a)):
            return None
        if not same(a, b, view):
            return None
    return outer[1], line


def _arguments(call: ast.Call) -> list[tuple[str | None, ast.expr]]:
    return [*((None, a) for a in call.args), *((k.arg, k.value) for k in call.keywords)]
