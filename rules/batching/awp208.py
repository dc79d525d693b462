"""AWP208 pipeline-unbatched."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.values import Value
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.batching.calls import depends_on, item_loops, may_be_fed, may_run_model
from awp_lint.rules.common import frequency_reason, has_loops, judge, lower, served_frequency, short, target_names

_PIPELINE = re.compile(r"(^|\.)(pipeline|Pipeline|[A-Z]\w*Pipeline)$")
_ENCODERS = re.compile(r"sentence_transformers\.|(^|\.)(SentenceTransformer|CrossEncoder|FlagModel)$")


class PipelineUnbatched(Rule):
    """A pipeline or sentence encoder called once an item."""

    id = "AWP208"
    name = "pipeline-unbatched"
    root_cause = RootCause.SCHEDULING
    confidence = Confidence.MEDIUM
    cost_us = 5000.0
    event = Event.LAUNCHES
    mark = MarkKind.LOOP
    words = (b"pipeline", b"Pipeline", b"SentenceTransformer", b"CrossEncoder", b"encode(")
    nodes = (ast.Call,)
    over = ("AWP201",)

    summary = "a pipeline or sentence encoder is called once for each item"
    what = """
        A loop over texts, images or requests that calls a transformers `pipeline`, or `encode`/`predict` of a sentence
        encoder, with one item at a time.
        """
    why = """
        Both take a list and a `batch_size`; one item a call runs the model at batch size 1 and pays the overhead of
        tokenising and of the call for each.
        """
    fine = """
        - Generation of very different lengths, where batching pads a lot: measure.
        - Loops over batches.
        """
    safety = """
        No automatic rewrite: pass the list and a `batch_size`; the results come back as a list or one array.
        No diff, since the right batch size is a matter of memory.
        """
    references = (
        "https://huggingface.co/docs/transformers/main_classes/pipelines#pipeline-batching",
        "https://sbert.net/docs/package_reference/sentence_transformer/SentenceTransformer.html",
    )
    bad = """
        from sentence_transformers import SentenceTransformer

        encoder = SentenceTransformer("encoder")

        def predict(texts: list[str]) -> list:
            vectors = []
            for text in texts:
                vectors.append(encoder.encode(text))
            return vectors
        """
    good = """
        from sentence_transformers import SentenceTransformer

        encoder = SentenceTransformer("encoder")

        def predict(texts: list[str]) -> list:
            return list(encoder.encode(texts, batch_size=32))
        """

    def concerns(self, view: FunctionView, file: FileView) -> bool:
        return has_loops(view)

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        name = _runner(node, view) if may_run_model(node) and may_be_fed(node, view) else None
        if name is None:
            return
        for loop in item_loops(view, node):
            if not depends_on(node, target_names(loop.target), loop):
                continue
            frequency = served_frequency(view, node)
            if frequency is None:
                return
            items = short(loop.iter, 40)
            yield Candidate(
                node=loop if isinstance(loop, ast.stmt) else node,
                message=f"`{name}(...)` runs once for each item of `{items}`, at batch size 1",
                action=f"call `{name}` once with all of `{items}` and a `batch_size`",
                confidence=lower(self.confidence, judge(frequency)),
                frequency=frequency,
                why=(f"`{name}` takes a list", *frequency_reason(frequency)),
                mark=MarkKind.LOOP if isinstance(loop, ast.stmt) else MarkKind.STATEMENT,
                covers=(node, loop),
            )
            return


def _runner(call: ast.Call, view: FunctionView) -> str | None:
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in ("encode", "predict", "rank"):
        return ast.unparse(func) if _is(view.value(func.value), _ENCODERS) else None
    if isinstance(func, ast.Name | ast.Attribute) and _is(view.value(func), _PIPELINE):
        return ast.unparse(func)
    return None


def _is(value: Value, pattern: re.Pattern[str]) -> bool:
    return (
        value.cls is not None
        and value.kind.value not in ("callable", "class", "external")
        and bool(pattern.search(value.cls))
    )
