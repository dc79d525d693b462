"""AWP507 cache-off."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, MarkKind, RootCause, Safety
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import IDLE, argument, callee, judge, lower, short

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition


class CacheOff(Rule):
    """Generation with the KV cache switched off."""

    id = "AWP507"
    name = "cache-off"
    root_cause = RootCause.MEMORY
    confidence = Confidence.HIGH
    cost_us = 20000.0
    event = Event.LAUNCHES
    mark = MarkKind.CALL
    words = (b"use_cache",)
    anywhere = True
    nodes = (ast.Call,)
    calls = frozenset({"generate", "GenerationConfig", "sample", "greedy_search"})

    summary = "generation runs without a KV cache"
    what = """
        `generate(..., use_cache=False)`, and a `GenerationConfig` with `use_cache=False`.
        """
    why = """
        Every token then runs the whole sequence through the model again: the cost of a step grows with the text, n
        tokens cost on the order of n² instead of n.
        """
    fine = """
        - Training and gradient checkpointing.
        - One forward without generation.
        - Models whose state is no KV cache.
        """
    safety = """
        Unsafe: the argument becomes `use_cache=True`. The cache needs memory for every layer, head and token, and
        numbers may differ in the last bits.
        """
    tolerance = 16
    references = (
        "https://huggingface.co/docs/transformers/kv_cache",
        "https://huggingface.co/docs/transformers/main_classes/text_generation",
    )
    bad = """
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained("lm").to("cuda")

        def predict(ids):
            return model.generate(ids, max_new_tokens=64, use_cache=False)
        """
    good = """
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained("lm").to("cuda")

        def predict(ids):
            return model.generate(ids, max_new_tokens=64)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        off = argument(node, None, "use_cache")
        if not (isinstance(off, ast.Constant) and off.value is False):
            return
        name = callee(node)
        if name not in ("generate", "GenerationConfig", "sample", "greedy_search") or view.regions(node) & IDLE:
            return
        frequency = view.frequency(node)
        yield Candidate(
            node=node,
            message=f"`{short(node.func, 40)}(...)` runs the whole sequence again for every token: `use_cache=False`",
            action="delete `use_cache=False`",
            confidence=lower(Confidence.MEDIUM, judge(frequency)) if name != "generate" else _level(frequency.known),
            frequency=frequency,
            why=("the argument is a literal",),
            data=off,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        if not isinstance(candidate.data, ast.expr):
            return None
        return Fix(
            title="keep keys and values: `use_cache=True`",
            safety=Safety.UNSAFE,
            edits=(definition.replace(candidate.data, "True"),),
            effects=(Effect.MEMORY, Effect.NUMERICS),
            requires=("the cache fits in memory",),
        )


def _level(known: bool) -> Confidence:
    """The call itself proves the fault; only how often it runs may be unknown."""
    return Confidence.HIGH if known else Confidence.MEDIUM
