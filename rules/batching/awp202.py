"""AWP202 tokenize-per-sample."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.batching.calls import carries_state, depends_on, item_loops, may_be_fed, may_run_model
from awp_lint.rules.common import (
    callee,
    frequency_reason,
    has_loops,
    judge,
    lower,
    served_frequency,
    short,
    target_names,
)

_METHODS = frozenset({"encode", "encode_plus", "tokenize", "__call__"})


class TokenizePerSample(Rule):
    """A tokenizer or processor called once an item of a list."""

    id = "AWP202"
    name = "tokenize-per-sample"
    root_cause = RootCause.SCHEDULING
    confidence = Confidence.LOW
    cost_us = 300.0
    event = Event.HOST
    mark = MarkKind.LOOP
    words = (b"for ",)
    nodes = (ast.Call,)

    summary = "a tokenizer or processor is called once for each item of a list"
    what = """
        A loop or comprehension over texts, prompts or images that calls a tokenizer or processor with one item at a
        time.
        """
    why = """
        Fast tokenizers work on a list with all cores and cross from Python once; one call an item pays the overhead of
        the call, hundreds of microseconds with tensors and padding, for each.
        """
    fine = """
        - Loops over batches; a pass that needs the last one's result.
        - Shown at low confidence only: readers of real findings turned nine of eleven down, a few texts in front of a
          generation, or once for a set of classes.
        - Lengths that must be known item by item before batches are formed, once at start-up.
        """
    safety = """
        No automatic rewrite: call it once with the list. Padding and the types of what it returns differ: ask for
        `padding=True` where tensors are wanted.
        """
    references = (
        "https://huggingface.co/docs/transformers/main_classes/tokenizer",
        "https://huggingface.co/docs/tokenizers/api/tokenizer",
    )
    bad = """
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained("lm")

        def predict(texts: list[str]) -> list:
            ids = []
            for text in texts:
                ids.append(tokenizer(text).input_ids)
            return ids
        """
    good = """
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained("lm")

        def predict(texts: list[str]) -> list:
            return tokenizer(texts).input_ids
        """

    def concerns(self, view: FunctionView, file: FileView) -> bool:
        return has_loops(view)

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if not may_run_model(node) or not may_be_fed(node, view):
            return
        name = _tokenizer(node, view)
        if name is None or view.targets(node):
            return  # a tokenizer of the project: whether it takes a list is not known
        for loop in item_loops(view, node):
            if not depends_on(node, target_names(loop.target), loop) or carries_state(node, loop):
                continue
            frequency = served_frequency(view, node)
            if frequency is None:
                return
            items = short(loop.iter, 40)
            yield Candidate(
                node=loop if isinstance(loop, ast.stmt) else node,
                message=f"`{name}(...)` runs once for each item of `{items}`",
                action=f"call `{name}` once with all of `{items}`",
                confidence=lower(self.confidence, judge(frequency)),
                frequency=frequency,
                why=(f"`{name}` is a tokenizer or processor", *frequency_reason(frequency)),
                mark=MarkKind.LOOP if isinstance(loop, ast.stmt) else MarkKind.STATEMENT,
            )
            return


def _tokenizer(call: ast.Call, view: FunctionView) -> str | None:
    func = call.func
    if view.value(func).kind is Kind.TOKENIZER:
        return ast.unparse(func)
    if isinstance(func, ast.Attribute) and callee(call) in _METHODS and view.value(func.value).kind is Kind.TOKENIZER:
        return ast.unparse(func)
    return None
