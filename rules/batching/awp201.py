"""AWP201 call-per-sample."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.values import Certainty
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.batching.calls import (
    MODELS_ALONE,
    along_another_axis,
    bound_by,
    carries_state,
    cut_by_number,
    depends_on,
    fed,
    in_pieces,
    item_loops,
    may_be_fed,
    may_lack_parts,
    model_call,
    model_of,
    of_few_prompts,
    one_of_many,
    taken_whole,
)
from awp_lint.rules.batching.helpers import model_behind
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


class CallPerSample(Rule):
    """A model called once an item of what could be one batch."""

    id = "AWP201"
    name = "call-per-sample"
    root_cause = RootCause.SCHEDULING
    confidence = Confidence.MEDIUM
    cost_us = 5000.0
    event = Event.LAUNCHES
    mark = MarkKind.LOOP
    words = (b"for ",)
    nodes = (ast.Call,)

    summary = "a model is called once for each item of what could be one batch"
    what = """
        A loop or comprehension over prompts, texts, images, rows or samples that calls a model, an encoder or
        `generate` with one item at a time, by itself or in a helper of the same file, where no pass needs the result of
        the one before.
        """
    why = """
        At batch size 1 a forward is bound by launches or by reading the weights, so n items cost n times as much as
        one. As one batch they cost little more than one item, until the device is busy.
        """
    fine = """
        - Loops over batches, chunks, a data loader, layers, denoising steps, generated tokens or experts.
        - A pass that needs the last pass's output, or a cache that it left.
        - Items that cannot be stacked (each of another size), and tiles and chunks of one input, which are cut on
          purpose against running out of memory; stretches of a stream, of which each needs what the one before left.
        - Records of which several parts may be missing, as prompts of an image may (`record.get("boxes")`): low
          confidence.
        - The prompts of a diffusion pipeline, one or two in front of all its steps; the branch for lists of a function
          that hands a batch to the same model in the other branch: low confidence.
        - Passes of which each calls a module of its own (`self.heads[i](x)`).
        - Set-up, tests, training and benchmarks.
        """
    safety = """
        No automatic rewrite: pad or sort the items into batches and call the model once a batch; the results then come
        back as one tensor. No diff, since what pads the items and takes the result apart lies with the callers.
        """
    references = (
        "https://huggingface.co/docs/transformers/main_classes/pipelines#pipeline-batching",
        "https://sbert.net/docs/package_reference/sentence_transformer/SentenceTransformer.html",
    )
    bad = """
        import torch
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained("encoder")
        model = AutoModel.from_pretrained("encoder").to("cuda").eval()

        @torch.inference_mode()
        def predict(texts: list[str]) -> list[torch.Tensor]:
            vectors = []
            for text in texts:
                inputs = tokenizer(text, return_tensors="pt").to("cuda")
                vectors.append(model(**inputs).last_hidden_state[:, 0])
            return vectors
        """
    good = """
        import torch
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained("encoder")
        model = AutoModel.from_pretrained("encoder").to("cuda").eval()

        @torch.inference_mode()
        def predict(texts: list[str]) -> torch.Tensor:
            vectors = []
            for start in range(0, len(texts), 32):
                inputs = tokenizer(texts[start : start + 32], padding=True, return_tensors="pt").to("cuda")
                vectors.append(model(**inputs).last_hidden_state[:, 0])
            return torch.cat(vectors)
        """

    def concerns(self, view: FunctionView, file: FileView) -> bool:
        return has_loops(view)

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if not may_be_fed(node, view):
            return
        name = behind = None
        for loop in item_loops(view, node):
            names = target_names(loop.target)
            name = name or model_call(node, view)
            if name is None:
                behind = model_behind(node, bound_by(names, loop), view, file)
                name = None if behind is None or _told(loop, node, view) else ast.unparse(node.func)
            if name is None:
                return
            if not depends_on(node, names, loop) or carries_state(node, loop):
                continue
            if (
                in_pieces(view, loop)
                or one_of_many(node, loop)
                or along_another_axis(node, loop)
                or cut_by_number(loop)
            ):
                return
            frequency = served_frequency(view, node)
            if frequency is None:
                return
            confidence = lower(self.confidence, judge(frequency))
            known = view.value(model_of(node)).certainty is not Certainty.UNKNOWN or callee(node) in MODELS_ALONE
            sure = known or behind is not None
            aside = of_few_prompts(view) or taken_whole(node, view) or may_lack_parts(loop)
            if view.regions(node) & Region.FALLBACK or not sure or aside:
                confidence = Confidence.LOW
            items = short(loop.iter, 40)
            yield Candidate(
                node=loop if isinstance(loop, ast.stmt) else node,
                message=f"`{name}(...)` runs once for each item of `{items}`{_alone(node, loop, view)}",
                action=f"batch the items of `{items}` (padded or sorted by length) and call `{name}` once a batch",
                confidence=confidence,
                frequency=frequency,
                why=(
                    f"`{name}` is a model" if behind is None else f"`{name}` runs the model `{behind}`",
                    *frequency_reason(frequency),
                ),
                mark=MarkKind.LOOP if isinstance(loop, ast.stmt) else MarkKind.STATEMENT,
                covers=(node,),
            )
            return


def _told(loop: ast.AST, call: ast.Call, view: FunctionView) -> bool:
    """Whether another helper that the loop calls before is told of already; this one is from now on."""
    return view.memo.setdefault(_told, {}).setdefault(loop, call) is not call


def _alone(call: ast.Call, loop: ast.AST, view: FunctionView) -> str:
    """``, at batch size 1``, unless an item makes a list of inputs: `[template(name) for template in templates]`."""
    given = fed(call)
    for statement in view.nodes(ast.Assign):
        assert isinstance(statement, ast.Assign)
        made = isinstance(statement.value, ast.ListComp) and loop in view.loops(statement)
        if made and any(target_names(target) & given for target in statement.targets):
            return ""
    return ", at batch size 1"
