"""AWP407 growing-cache."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, RootCause
from awp_lint.detector.semantics.definition import is_none
from awp_lint.detector.semantics.values import Device, Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.batching.calls import model_call
from awp_lint.rules.common import IDLE, argument, frequency_reason, judge, loop_body, lower, often, short
from awp_lint.rules.graphs.growth import growths

_LOOPS = (LoopKind.TOKENS, LoopKind.STEPS)
_CACHES = ("past_key_values", "past_key_value", "past", "cache", "kv_cache")
_DYNAMIC = re.compile(r"(^|\.)(DynamicCache|EncoderDecoderCache|HybridCache|OffloadedCache)$")
#: What is fed to a model as its text: with a growing text the cache itself is missing (AWP509).
_TEXT = ("input_ids", "tokens", "ids", "inputs_embeds", "decoder_input_ids")


class GrowingCache(Rule):
    """State of a step whose shape changes at every step."""

    id = "AWP407"
    name = "growing-cache"
    root_cause = RootCause.RUNTIME
    confidence = Confidence.MEDIUM
    cost_us = 400.0
    event = Event.COPY
    words = (b"cat(", b"concat", b"hstack", b"past_key_value", b"DynamicCache")
    nodes = (ast.For, ast.While)
    over = ("AWP309",)

    summary = "what a step is given grows at every step, so that the step can be neither captured nor compiled once"
    what = """
        In a loop over tokens or steps that calls a model: a mask, position list or state that is joined with itself and
        handed to the model, and a `transformers` cache that starts empty (`past_key_values=None` and taken from the
        output, or a `DynamicCache`).
        """
    why = """
        A CUDA graph replays fixed addresses and sizes; a tensor that is new and longer at every step forbids it, and
        each step copies all of the old one. A cache, a mask and a position made once in their largest size make every
        step alike.
        """
    fine = """
        - Caches that are made in their full size (`StaticCache`, `cache_implementation="static"`).
        - A sliding window of constant length.
        - Long maximum lengths with short answers: attention over the whole buffer can cost more than the launches
          saved. A run tells. Library code and loops whose caller is not known: low confidence.
        - The text itself growing without any cache is AWP509; keys and values joined by hand are AWP506.
        """
    safety = """
        Unsafe where the step-loop patch understands the code (memory for the largest length, sums in another order);
        else a recommendation: allocate once, write the new part into its place, keep positions on the device.
        """
    references = (
        "https://huggingface.co/docs/transformers/kv_cache",
        "huggingface/transformers#30760 static cache and compiled decode",
        "huggingface/transformers#40328 where a static cache does not pay",
    )
    bad = """
        import torch

        @torch.inference_mode()
        def generate(model: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor, max_new_tokens: int) -> list:
            cache, step, found = None, ids, []
            for _ in range(max_new_tokens):
                out = model(step, attention_mask=mask, past_key_values=cache, use_cache=True)
                cache, step = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
                mask = torch.cat([mask, torch.ones_like(step)], dim=1)
                found.append(step)
            return found
        """
    good = """
        import torch

        @torch.inference_mode()
        def generate(model: torch.nn.Module, ids: torch.Tensor, cache: object, max_new_tokens: int) -> list:
            step, found = ids, []
            positions = torch.arange(ids.shape[1], device=ids.device)
            for _ in range(max_new_tokens):
                out = model(step, past_key_values=cache, cache_position=positions, use_cache=True)
                step, positions = out.logits[:, -1].argmax(-1, keepdim=True), positions[-1:] + 1
                found.append(step)
            return found
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.For | ast.While)
        if view.loop_kind(node) not in _LOOPS or view.regions(node) & IDLE:
            return
        calls = [call for call in _calls(node, view) if model_call(call, view) is not None]
        for call in calls:
            for name, statement in growths(node):
                if not _fed(call, name) or view.value(statement.value).device is Device.HOST:
                    continue
                level = self._level(statement.value, call, view)
                if level is not None:
                    yield _about(level, statement.value, call, name, "grows by a copy", view)
            cache = _dynamic_cache(call, node, view)
            if cache is not None:
                level = self._level(call, call, view)
                if level is not None:
                    yield _about(level, call, call, short(cache, 40), "is a cache that grows", view)
            return  # the first model call of the loop is its step

    def _level(self, node: ast.AST, call: ast.Call, view: FunctionView) -> Confidence | None:
        frequency = view.frequency(node)
        if frequency.known and not frequency.path:
            return None
        confidence = lower(self.confidence, judge(frequency))
        return confidence if view.value(call.func).kind is Kind.MODULE else Confidence.LOW


def _about(level: Confidence, node: ast.expr, call: ast.Call, name: str, how: str, view: FunctionView) -> Candidate:
    frequency = view.frequency(node)
    model = short(call.func, 30)
    return Candidate(
        node=node,
        message=f"`{name}` {how} {often(frequency)}, so the step of `{model}` cannot be captured".replace("  ", " "),
        action=f"make `{name}` once in its largest size and write the new part into its place",
        confidence=level,
        frequency=frequency,
        why=(f"`{name}` goes into `{model}(...)` (line {call.lineno})", *frequency_reason(frequency)),
    )


def _calls(loop: ast.For | ast.While, view: FunctionView) -> Iterator[ast.Call]:
    for statement in loop_body(loop):
        for part in ast.walk(statement):
            if isinstance(part, ast.Call) and view.parent(part) is not None:
                around = view.loops(part)
                if around and around[0] is loop:
                    yield part


def _fed(call: ast.Call, name: str) -> bool:
    """Whether a growing name goes into the call whole, as something else than the text."""
    if any(isinstance(a, ast.Name) and a.id == name for a in call.args[:1]):
        return False
    if any(isinstance(a, ast.Name) and a.id == name for a in call.args[1:]):
        return True
    return any(
        isinstance(k.value, ast.Name) and k.value.id == name and k.arg is not None and k.arg not in _TEXT
        for k in call.keywords
    )


def _dynamic_cache(call: ast.Call, loop: ast.For | ast.While, view: FunctionView) -> ast.expr | None:
    """The cache argument of a ``transformers`` call that starts empty and comes back longer."""
    given = next((a for name in _CACHES[:2] if (a := argument(call, None, name)) is not None), None)
    if not isinstance(given, ast.Name):
        return None
    empty = taken = False
    inside = {id(part) for statement in loop_body(loop) for part in ast.walk(statement)}
    for statement in view.assignments(given.id):
        if not isinstance(statement, ast.Assign):
            continue
        value = _value_for(statement, given.id)
        if value is None:
            continue
        if id(statement) in inside:
            taken = taken or any(isinstance(p, ast.Attribute) and p.attr in _CACHES[:2] for p in ast.walk(value))
        elif is_none(value):
            empty = True
        elif isinstance(value, ast.Call) and _DYNAMIC.search(view.qualified(value.func) or ""):
            empty = taken = True
    return given if empty and taken else None


def _value_for(statement: ast.Assign, name: str) -> ast.expr | None:
    for target in statement.targets:
        if isinstance(target, ast.Name) and target.id == name:
            return statement.value
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            for part, value in zip(target.elts, statement.value.elts, strict=False):
                if isinstance(part, ast.Name) and part.id == name:
                    return value
    return None
