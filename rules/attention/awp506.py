"""AWP506 cat-kv-cache."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Event, Fix, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView, Level
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import IDLE, callee, frequency_reason, lower, often, short, sureness

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_PAST = re.compile(
    r"past|prev(ious)?_?(k|key|v|value)|(k|key|v|value|kv)s?_?cache|cache_?(k|key|v|value)|cached|layer_past|prev_kv",
    re.IGNORECASE,
)
_CACHE = re.compile(r"cache$", re.IGNORECASE)
_KV = re.compile(r"(^|_)(k|v|key|value|keys|values|kv)(_|s?$|\d)|(key|value)_?(states|layer)", re.IGNORECASE)

#: One of several kinds of caches of a library, whose others do not grow so.
_ON_PURPOSE = re.compile(r"Dynamic|Quanti[sz]ed")


class CatKvCache(Rule):
    """A KV cache that grows by concatenation."""

    id = "AWP506"
    name = "cat-kv-cache"
    root_cause = RootCause.MEMORY
    confidence = Confidence.MEDIUM
    cost_us = 100.0
    event = Event.COPY
    words = (
        b"cat(",
        b"concat",
    )
    nodes = (ast.Call,)
    calls = frozenset({"cat", "concat", "concatenate"})
    doubted = True
    over = ("AWP407", "AWP309")

    summary = "the KV cache grows by concatenation at every step"
    what = """
        `torch.cat([past_key, key], dim=...)`: keys or values of earlier tokens copied together with the new ones, in
        code that runs for every token or layer.
        """
    why = """
        Every step allocates a new cache and copies the old one, so the traffic grows with the square of the text; the
        shape changes at every step, which forbids CUDA graphs and makes compiled code recompile.
        """
    fine = """
        - Code that no decode loop is seen to reach: an encoder that carries the parameter along, a cache that is filled
          before the denoising steps. Shown at low confidence.
        - A sliding window, which keeps the last positions alone: low confidence.
        - Short prefixes that are joined once (prompt or image tokens before the loop).
        - A dynamic cache chosen on purpose: a static one costs memory and work for its whole length.
        """
    safety = """
        Unsafe: what is appended goes into spare room behind the cache, up to the next power of two. The values are
        the same; the result is a view of a larger tensor, so that nothing may write into it or view it as contiguous.
        A cache that was sliced, reordered or appended to before is copied, as it was. It pays for large caches: on an
        H200 the call takes 12 us on the host and `torch.cat` 8 us, of a cache of 4 MB as of one of 100 kB. Better
        still, where its largest length is known: allocate it once and write the new slice
        (`cache[:, :, position] = key`), or use the library's static cache; the step-loop patch (AWP401) brings one
        where it understands the loop.
        """
    references = (
        "https://huggingface.co/docs/transformers/kv_cache",
        "huggingface/transformers#40328 where a static cache did not pay",
    )
    bad = """
        import torch

        class Attention(torch.nn.Module):
            def forward(
                self, key: torch.Tensor, value: torch.Tensor, past_key: torch.Tensor, past_value: torch.Tensor
            ) -> tuple:
                key = torch.cat([past_key, key], dim=2)
                value = torch.cat([past_value, value], dim=2)
                return key, value
        """
    good = """
        import torch

        class Attention(torch.nn.Module):
            def forward(
                self, key: torch.Tensor, value: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, position: int
            ) -> tuple:
                keys[:, :, position : position + key.shape[2]] = key
                values[:, :, position : position + value.shape[2]] = value
                return keys, values
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) not in ("cat", "concat", "concatenate") or not node.args:
            return
        parts = node.args[0]
        if not isinstance(parts, ast.List | ast.Tuple) or len(parts.elts) != 2:
            return
        if not (view.qualified(node.func) or "").startswith("torch.") or view.regions(node) & IDLE:
            return
        old, new = parts.elts
        old_text, new_text = ast.unparse(old), ast.unparse(new)
        held = _own_part(old, view)
        if not (_PAST.search(old_text) or held) or not _KV.search(_last(new)) or _PAST.search(new_text):
            return
        frequency = view.frequency(node)
        if frequency.known and not frequency.path:
            return
        confidence = lower(self.confidence, sureness(view, node, frequency))
        if Level.TOKEN not in frequency.path or _windowed(old, view) or _looked_up_only(old, new, view):
            confidence = Confidence.LOW
        yield Candidate(
            node=node,
            message=f"`{short(old, 40)}` is copied whole to append `{short(new, 30)}` {often(frequency)}".rstrip(),
            action=f"allocate the cache once and write `{short(new, 30)}` into its slice",
            confidence=confidence,
            frequency=frequency,
            why=frequency_reason(frequency),
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.attention.room import appended

        assert isinstance(candidate.node, ast.Call)
        return appended(candidate.node, definition)


def _own_part(node: ast.expr, view: FunctionView) -> bool:
    """Keys or values that an object keeps: ``self.key`` of a ``KVCache``, or what takes the place of ``self.key``."""
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    if not own or not _KV.search(_last(node)):
        return False
    owner = (view.class_name or "").rpartition(".")[2]
    return bool(_CACHE.search(owner)) or (_put_back(node, view) and not _ON_PURPOSE.search(owner))


def _put_back(node: ast.expr, view: FunctionView) -> bool:
    """Whether what an attribute is joined to takes its place."""
    statement, name = view.statement(node), ast.unparse(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(ast.unparse(part) == name for t in targets for part in (t.elts if isinstance(t, ast.Tuple) else [t]))


def _windowed(old: ast.expr, view: FunctionView) -> bool:
    """Whether the function keeps the last positions alone: ``self.keys = full[:, :, -window:]`` does not grow.

    Nor does what it empties again, once that has been packed: ``self.keys = torch.tensor([])``.
    """
    name = ast.unparse(old)
    values = [
        statement.value
        for statement in view.nodes(ast.Assign)
        if isinstance(statement, ast.Assign) and any(ast.unparse(target) == name for target in statement.targets)
    ]
    return any(_empty(value) or any(_from_the_end(part) for part in ast.walk(value)) for value in values)


def _looked_up_only(old: ast.expr, new: ast.expr, view: FunctionView) -> bool:
    """Whether the old part is looked up in a store, ``past := shared.get(layer)``, which gets nothing back."""
    while isinstance(old, ast.Subscript):
        old = old.value
    named = (node for node in view.nodes(ast.NamedExpr) if isinstance(node, ast.NamedExpr))
    if not (isinstance(old, ast.Name) and any(n.target.id == old.id and _asks_store(n.value) for n in named)):
        return False
    name = _last(new)
    stored = (node for node in view.nodes(ast.Assign, ast.Return) if isinstance(node, ast.Assign | ast.Return))
    return not any(
        isinstance(part, ast.Tuple) and any(isinstance(e, ast.Name) and e.id == name for e in part.elts)
        for node in stored
        for part in ast.walk(node)
        if not (isinstance(node, ast.Assign) and part in node.targets)
    )


def _asks_store(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and callee(node) == "get"


def _from_the_end(part: ast.AST) -> bool:
    lower = part.lower if isinstance(part, ast.Slice) else None
    return isinstance(lower, ast.UnaryOp | ast.BinOp) and "-" in ast.unparse(lower)


def _empty(value: ast.expr) -> bool:
    """``torch.tensor([])`` or ``torch.empty(0)``."""
    if not isinstance(value, ast.Call) or not value.args:
        return False
    first = value.args[0]
    nothing = isinstance(first, ast.List) and not first.elts and callee(value) == "tensor"
    return nothing or (isinstance(first, ast.Constant) and first.value == 0 and callee(value) in ("empty", "zeros"))


def _last(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
