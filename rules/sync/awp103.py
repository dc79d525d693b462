"""AWP103 device-iteration."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.values import Kind, Value
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    callee,
    frequency_reason,
    maybe_device,
    often,
    reasons,
    served_frequency,
    short,
    sureness,
)

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_BUILTINS = frozenset({"any", "all", "max", "min", "sorted"})
_BY_KEY = frozenset({"groupby", "Counter", "set", "frozenset"})
_ADVICE = {
    "any": "use `{0}.any()`, one wait, or select on the device",
    "all": "use `{0}.all()`, one wait, or select on the device",
    "max": "use `{0}.max()`",
    "min": "use `{0}.min()`",
    "sorted": "use `{0}.sort()`",
}


class DeviceIteration(Rule):
    """Python goes over the elements of a device tensor and asks for the value of each."""

    id = "AWP103"
    name = "device-iteration"
    root_cause = RootCause.RUNTIME
    cost_us = 500.0
    event = Event.WAIT
    words = (b"any(", b"all(", b"max(", b"min(", b"sorted(", b"groupby(", b"Counter(", b"set(")
    nodes = (ast.Call,)
    calls = _BUILTINS | _BY_KEY
    doubted = True
    over = ("AWP102", "AWP101")

    summary = "Python builtins compare the elements of a device tensor one by one"
    what = """
        Python's `any`, `all`, `max`, `min`, `sorted`, `set`, `groupby` or `Counter` over a tensor that lives on the
        accelerator, or over its elements in a generator.
        """
    why = """
        Each element becomes a tensor of its own whose truth, order or hash Python asks for: one launch and one wait an
        element, where one reduction on the device and at most one wait would do.
        """
    fine = """
        - Iterating, unpacking or zipping a tensor: `unbind` makes views and waits for nothing (AWP203 if rows launch).
        - `sum` over tensors, which adds on the device.
        - Lists of Python numbers, shapes, host tensors.
        """
    safety = """
        Unsafe: the tensor's own reduction (`x.any()`, `x.max()`, `torch.maximum`) for tensors of one dimension without
        NaN, and one `.tolist()` for `groupby`, whose keys are then numbers. Items of a generator get a recommendation.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
        "https://docs.pytorch.org/docs/stable/generated/torch.any.html",
    )
    bad = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, is_global: torch.Tensor) -> torch.Tensor:
                if any(is_global.flatten()):
                    hidden_states = hidden_states * 2
                return hidden_states
        """
    good = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, is_global: torch.Tensor) -> torch.Tensor:
                return torch.where(is_global.any(), hidden_states * 2, hidden_states)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        found = _of_call(node, view)
        if found is None:
            return
        source, value, action = found
        frequency = served_frequency(view, node)
        if frequency is None:
            return
        confidence = sureness(view, node, frequency, value)
        yield Candidate(
            node=node,
            message=f"`{short(node)}` waits for the device once for each element of `{short(source, 40)}`"
            + (f", {words}" if (words := often(frequency)) else ""),
            action=action,
            confidence=confidence,
            frequency=frequency,
            why=(*reasons(value, source), *frequency_reason(frequency)),
            covers=tuple(ast.walk(node)),
            data=source,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        call, source, view = candidate.node, candidate.data, definition.view
        assert isinstance(call, ast.Call)
        name = callee(call)
        if call.keywords or any(isinstance(a, ast.Starred | ast.GeneratorExp | ast.ListComp) for a in call.args):
            return None
        requires: tuple[str, ...] = ()
        if name in ("max", "min") and len(call.args) == 2:
            if not all(view.value(a).is_tensor for a in call.args):
                return None
            one, other = map(definition.text, call.args)
            code = f"{definition.torch_name(f'torch.{name}imum')}({one}, {other})"
            requires = ("neither is NaN",)
        elif (
            len(call.args) != 1
            or call.args[0] is not source
            or not isinstance(source, ast.expr)
            or not view.value(source).is_tensor
            or view.value(source).rank not in (None, 1)
        ):
            return None
        else:
            text = definition.text(source)
            text = text if isinstance(source, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"
            shown = short(source, 40)
            if view.value(source).rank is None:
                requires = (f"`{shown}` has one dimension",)
            if name in ("any", "all"):
                code = f"bool({text}.{name}())"
            elif name in ("max", "min"):
                code = f"{text}.{name}()"
                requires += (f"`{shown}` holds no NaN",)
            elif name == "groupby":
                code = f"{definition.text(call.func)}({text}.tolist())"
                requires += ("the keys are used as numbers",)
            else:
                return None
        return Fix(
            title=f"`{short(call, 40)}` without asking for every element",
            safety=Safety.UNSAFE,
            edits=(definition.replace(call, code),),
            effects=(Effect.TIMING, Effect.NUMERICS) if name in ("max", "min") else (Effect.TIMING, Effect.STRUCTURE),
            requires=requires,
        )


_Found = tuple[ast.expr, Value, str]


def _of_call(call: ast.Call, view: FunctionView) -> _Found | None:
    name = callee(call)
    builtin = isinstance(call.func, ast.Name) and name in _BUILTINS
    if not builtin and not (name in _BY_KEY and (isinstance(call.func, ast.Name) or name != "set")):
        return None
    if not call.args or isinstance(call.args[0], ast.Starred):
        return None
    if view.assignments(name):
        return None  # a local function of that name
    first = call.args[0]
    if isinstance(first, ast.GeneratorExp | ast.ListComp):
        value = view.value(first.elt)
        return _found(name, first.elt, value, True) if builtin and maybe_device(value) else None
    if builtin and name in ("max", "min") and len(call.args) > 1:
        for arg in call.args:
            if not isinstance(arg, ast.Starred) and maybe_device(view.value(arg)):
                return arg, view.value(arg), f"use `torch.{name}imum` of two tensors, or Python numbers"
        return None
    value = view.value(first)
    if value.kind in (Kind.SEQUENCE, Kind.ITERATOR) and value.element is not None and maybe_device(value.element):
        # a list of device scalars: the same, one wait an item
        return _found(name, first, value.element, True) if value.element.rank == 0 else None
    return _found(name, first, value, False) if maybe_device(value) else None


def _found(name: str, source: ast.expr, value: Value, items: bool) -> _Found:
    if name in _ADVICE and not items:
        return source, value, _ADVICE[name].format(short(source, 40))
    if name in _ADVICE:
        return source, value, f"stack the items and use `.{name.removesuffix('ed')}()` on the device"
    return source, value, f"read `{short(source, 40)}` once with `.tolist()` before"
