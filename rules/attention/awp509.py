"""AWP509 no-kv-cache-loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import IDLE, callee, frequency_reason, loop_body, lower, short, sureness

_EMBEDS = re.compile(r"embed|norm|wte|wpe|position|rotary|mask")
_RUNS = re.compile(r"forward|decode|decoder|logits|predict|run|infer")


class NoKvCacheLoop(Rule):
    """A decode loop that feeds the whole growing sequence at every step."""

    id = "AWP509"
    name = "no-kv-cache-loop"
    root_cause = RootCause.MEMORY
    confidence = Confidence.MEDIUM
    cost_us = 10000.0
    event = Event.LAUNCHES
    mark = MarkKind.LOOP
    words = (b"cat(", b"concat", b"append(")
    nodes = (ast.For, ast.While)
    doubted = True
    over = ("AWP401",)

    summary = "a decode loop runs the whole growing sequence through the model for every token"
    what = """
        A loop over generated tokens that calls a model with a sequence to which the loop appends, whole, and neither
        passes nor takes a cache.
        """
    why = """
        Keys and values of all earlier tokens are computed again at every step: the cost of a step grows with the text.
        """
    fine = """
        - The model keeps its cache itself, or gets only the last token.
        - Models without a cache (encoders, masked or diffusion language models), short fixed sequences.
        """
    safety = """
        A recommendation only: pass `past_key_values` and the last token (`use_cache=True`), or use `generate`.
        """
    references = (
        "https://huggingface.co/docs/transformers/kv_cache",
        "https://huggingface.co/docs/transformers/main_classes/text_generation",
    )
    bad = """
        import torch

        @torch.no_grad()
        def generate(model: torch.nn.Module, ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
            for _ in range(max_new_tokens):
                logits = model(ids)
                picked = logits[:, -1].argmax(-1, keepdim=True)
                ids = torch.cat([ids, picked], dim=1)
            return ids
        """
    good = """
        import torch

        @torch.no_grad()
        def generate(model: torch.nn.Module, ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
            cache, step = None, ids
            for _ in range(max_new_tokens):
                out = model(step, past_key_values=cache, use_cache=True)
                cache, step = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
                ids = torch.cat([ids, step], dim=1)
            return ids
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.For | ast.While)
        if view.loop_kind(node) is not LoopKind.TOKENS or view.regions(node) & IDLE:
            return
        grown = _grown(node)
        if not grown or _speaks_of_cache(node):
            return
        for call in _calls(node, view):
            fed = next((a.id for a in _inputs(call) if isinstance(a, ast.Name) and a.id in grown), None)
            if fed is None or not _runs_module(call, view):
                continue
            frequency = view.frequency(call)
            if frequency.known and not frequency.path:
                return
            name = short(call.func, 40)
            yield Candidate(
                node=node,
                message=f"`{name}({fed})` runs all of the growing `{fed}` again for every token",
                action="pass the cache and only the last token (`past_key_values`, `use_cache=True`)",
                confidence=lower(self.confidence, sureness(view, call, frequency)),
                frequency=frequency,
                why=(f"the loop appends to `{fed}` and no cache is passed", *frequency_reason(frequency)),
            )
            return


def _runs_module(call: ast.Call, view: FunctionView) -> bool:
    """``self.draft(tokens)`` of a module, or a method of the project's own, ``self.model.decode(tokens, memory)``;
    embeddings are no models."""
    if _EMBEDS.search(callee(call)):
        return False
    if view.value(call.func).kind is Kind.MODULE:
        return True
    return (
        isinstance(call.func, ast.Attribute)
        and _RUNS.fullmatch(call.func.attr) is not None
        and view.value(call.func.value).kind is Kind.MODULE
        and bool(view.targets(call))
    )


def _grown(loop: ast.For | ast.While) -> frozenset[str]:
    """Local names that the loop replaces by themselves with more at the end."""
    found: set[str] = set()
    for statement in loop_body(loop):
        for node in ast.walk(statement):
            if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.targets) == 1):
                continue
            target = node.targets[0]
            if callee(node.value) not in ("cat", "concat", "concatenate") or not isinstance(target, ast.Name):
                continue
            parts = node.value.args[0] if node.value.args else None
            if isinstance(parts, ast.List | ast.Tuple) and getattr(parts.elts[0], "id", None) == target.id:
                found.add(target.id)
    return frozenset(found)


def _speaks_of_cache(loop: ast.For | ast.While) -> bool:
    words = ("cache", "past", "state", "mems", "incremental", "start_pos", "input_pos", "position", "kv")
    for node in ast.walk(loop):
        name = ""
        if isinstance(node, ast.Name):
            name = node.id
        elif isinstance(node, ast.Attribute):
            name = node.attr
        elif isinstance(node, ast.keyword):
            name = node.arg or ""
        if any(word in name.lower() for word in words):
            return True
    return False


def _inputs(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args[:2]
    yield from (k.value for k in call.keywords if k.arg in ("input_ids", "tokens", "ids", "decoder_input_ids"))


def _calls(loop: ast.For | ast.While, view: FunctionView) -> Iterator[ast.Call]:
    for statement in loop_body(loop):
        for part in ast.walk(statement):
            if isinstance(part, ast.Call) and view.parent(part) is not None:
                yield part
