"""AWP503 expanded-kv."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.definition import is_none
from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView, Level
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    argument,
    assigned_name,
    callee,
    frequency_reason,
    lower,
    often,
    own_text,
    served_frequency,
    short,
    sureness,
    whole_program,
)
from awp_lint.rules.edits import add_keyword, pure_chain, remove
from awp_lint.rules.flow import binding, version

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_KV = re.compile(r"(^|_)(k|v|key|value|keys|values)(_|s?$|\d)|(key|value)_?(states|layer)", re.IGNORECASE)


class ExpandedKv(Rule):
    """Key and value heads repeated for grouped-query attention before the fused call."""

    id = "AWP503"
    name = "expanded-kv"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.MEDIUM
    cost_us = 80.0
    event = Event.COPY
    words = (b"scaled_dot_product_attention",)
    nodes = (ast.Call,)
    calls = frozenset({"scaled_dot_product_attention"})
    doubted = True

    summary = "key and value heads are copied out for grouped-query attention before the fused call"
    what = """
        `repeat_kv(k, n)` or a `repeat_interleave(n, dim=1)` whose result goes as the key into
        `scaled_dot_product_attention`, where the call takes no mask and could group the heads itself.
        """
    why = """
        The copies write every key and value n times to memory and the kernel reads them n times; with `enable_gqa=True`
        it reads each once.
        """
    fine = """
        - With a mask, in fp32 or with large heads the grouped call may fall back to the slow kernel: shown at low
          confidence only, unless the steps of a program's own decoder go without the mask.
        - torch before 2.5; functions that decide between both forms.
        """
    safety = """
        Unsafe: where keys and values are repeated for this call alone, the repeats are dropped and `enable_gqa=True` is
        passed. Numbers may differ in the last bits; masks, head sizes and types that no fused kernel takes with it fall
        back to slower ones, so measure.
        """
    tolerance = 16
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
    )
    bad = """
        import torch
        import torch.nn.functional as F

        class Attention(torch.nn.Module):
            def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
                k = k.repeat_interleave(4, dim=1)
                v = v.repeat_interleave(4, dim=1)
                return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        """
    good = """
        import torch
        import torch.nn.functional as F

        class Attention(torch.nn.Module):
            def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
                return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) != "scaled_dot_product_attention":
            return
        torch = file.target.torch
        if (torch is not None and torch < (2, 5)) or "enable_gqa" in own_text(view, file):
            return
        key = argument(node, 1, "key")
        repeat = _repeat_of(key, view) if key is not None else None
        if repeat is None:
            return
        frequency = served_frequency(view, node)
        if frequency is None:
            return
        mask = argument(node, 3, "attn_mask")
        unmasked = mask is None or is_none(mask)
        confidence = lower(self.confidence, sureness(view, node, frequency))
        if not unmasked and not (whole_program(frequency) and _none_in_steps(mask, frequency, view)):
            confidence = Confidence.LOW
        name = short(key, 30) if key is not None else "key"
        yield Candidate(
            node=repeat,
            message=f"`{short(repeat, 50)}` copies the heads of `{name}` {often(frequency)}".rstrip(),
            action="pass `enable_gqa=True` to `scaled_dot_product_attention` and leave the heads as they are",
            confidence=confidence,
            frequency=frequency,
            why=(f"its result is the key of the call in line {node.lineno}", *frequency_reason(frequency)),
            data=node,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        call, view = candidate.data, definition.view
        assert isinstance(call, ast.Call)
        edits = [add_keyword(call, "enable_gqa=True", definition)]
        for position, name in ((1, "key"), (2, "value")):
            passed = argument(call, position, name)
            if passed is None:
                return None
            bound = binding(passed, view)
            repeat = passed if isinstance(passed, ast.Call) else bound[0] if bound is not None else None
            if not isinstance(repeat, ast.Call) or not _repeats(repeat):
                return None
            source = _source(repeat, view)
            if source is None:
                return None
            if not isinstance(passed, ast.Name) or bound is None:
                edits.append(definition.replace(passed, definition.text(source)))
                continue
            seen = version(passed.id, passed, view)
            others = [use for use in view.uses(passed.id) if use is not passed and use not in ast.walk(repeat)]
            others = [use for use in others if not _other_size(use, view)]
            if any(view.parent(use) is None or version(use.id, use, view) == seen for use in others):
                return None
            dropped = remove(bound[1], definition)
            if dropped is None or not pure_chain(source):
                return None
            edits.append(dropped)
            if ast.unparse(source) != passed.id:
                edits.append(definition.replace(passed, definition.text(source)))
        return Fix(
            title="leave the heads as they are: `enable_gqa=True`",
            safety=Safety.UNSAFE,
            edits=tuple(edits),
            effects=(Effect.NUMERICS,),
            requires=("heads lie in dimension -3, and the fused kernels take this mask, head size and type",),
        )


def _other_size(use: ast.Name, view: FunctionView) -> bool:
    """``key.shape[2]``: a size that repeated heads do not change."""
    shape = view.parent(use)
    index = view.parent(shape) if isinstance(shape, ast.Attribute) and shape.attr == "shape" else None
    return (
        isinstance(index, ast.Subscript)
        and index.value is shape
        and ast.unparse(index.slice) in ("0", "2", "3", "-4", "-2", "-1")
    )


def _none_in_steps(mask: ast.expr | None, frequency: Frequency, view: FunctionView) -> bool:
    """Whether a decoder's steps of one token go without the mask: ``mask = None``, and one only ``if length > 1``."""
    if not isinstance(mask, ast.Name) or Level.TOKEN not in frequency.path:
        return False
    given = [s.value for s in view.assignments(mask.id) if isinstance(s, ast.Assign)]
    return any(is_none(value) for value in given)


def _repeat_of(key: ast.expr, view: FunctionView) -> ast.Call | None:
    """The call that repeats heads, where the key is its result."""
    if isinstance(key, ast.Call):
        return key if _repeats(key) else None
    if not isinstance(key, ast.Name):
        return None
    for node in view.nodes(ast.Call):
        assert isinstance(node, ast.Call)
        if _repeats(node) and assigned_name(view, node) == key.id and node.lineno < key.lineno:
            return node
    return None


def _repeats(call: ast.Call) -> bool:
    name = callee(call)
    if name in ("repeat_kv", "_repeat_kv", "repeat_kv_heads"):
        return True
    if name != "repeat_interleave":
        return False
    dim = argument(call, 1, "dim") if isinstance(call.func, ast.Attribute) else None
    source = call.func.value if isinstance(call.func, ast.Attribute) else None
    if any(_heads(argument(call, position, "dim")) for position in (1, 2)):
        return True
    if source is None or not _KV.search(ast.unparse(source)):
        source = call.args[0] if call.args else None
        dim = argument(call, 2, "dim")
    return source is not None and bool(_KV.search(ast.unparse(source))) and dim is not None


def _heads(dim: ast.expr | None) -> bool:
    """Whether a dimension is that of the heads in what attention takes: batch, heads, length, features."""
    return dim is not None and ast.unparse(dim) in ("1", "-3")


def _source(repeat: ast.Call, view: FunctionView) -> ast.expr | None:
    """What a repeating call repeats."""
    on_method = callee(repeat) == "repeat_interleave" and view.qualified(repeat.func) != "torch.repeat_interleave"
    if on_method:
        return repeat.func.value if isinstance(repeat.func, ast.Attribute) else None
    return repeat.args[0] if repeat.args else None
