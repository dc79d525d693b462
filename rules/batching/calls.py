"""Calls of models inside loops over items."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FunctionView, LoopKind
from awp_lint.rules.common import loop_body, names_in, target_names

#: Methods that run a model over what could be a batch.
MODEL_METHODS = frozenset({
    "generate", "encode_text", "encode_image", "get_text_features", "get_image_features", "transcribe", "forward",
    "encode_prompt", "predict", "infer", "embed", "get_audio_features",
})  # fmt: skip
#: Of them, those that nothing but a model has.
MODELS_ALONE = frozenset({
    "encode_text", "encode_image", "get_text_features", "get_image_features", "get_audio_features",
})  # fmt: skip
_MODEL_NAMES = re.compile(
    r"(^|_)(model|encoder|decoder|unet|vae|transformer|clip|bert|llm|lm|detector|classifier|embedder|reranker|net|network"
    r"|backbone|tower|generator)$"
)
_BATCHED = re.compile(r"(^|_)(batch(es)?|loader|dataloader|chunks?|buckets?|groups?|micro_?batches)(_|$)")


def model_call(call: ast.Call, view: FunctionView) -> str | None:
    """How a call that runs a whole model reads (``self.model``, ``model.generate``); None for any other call."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in MODEL_METHODS:
        owner = view.value(func.value)
        if owner.kind is Kind.MODULE or (owner.kind is Kind.UNKNOWN and _named_model(func.value)):
            return ast.unparse(func)
        return None
    value = view.value(func)
    if value.kind is Kind.MODULE and (_named_model(func) or _whole_model(value.cls)):
        return ast.unparse(func)
    return None


def model_of(call: ast.Call) -> ast.expr:
    """The model that a model call runs: ``self.model`` of ``self.model.generate(…)`` and of ``self.model(…)``."""
    func = call.func
    return func.value if isinstance(func, ast.Attribute) and func.attr in MODEL_METHODS else func


def _whole_model(cls: str | None) -> bool:
    return cls is not None and cls.startswith(("transformers.", "diffusers.", "sentence_transformers.", "timm."))


def _named_model(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return bool(_MODEL_NAMES.search(name.lower()))


def item_loops(view: FunctionView, node: ast.AST) -> Iterator[ast.For | ast.AsyncFor | ast.comprehension]:
    """The loops around a node that go over items one by one: rows, samples, prompts; innermost first."""
    for loop in view.loops(node):
        if isinstance(loop, ast.While):
            return
        kind = view.loop_kind(loop)
        if kind not in (LoopKind.BATCH, LoopKind.REQUESTS) and not (kind is LoopKind.UNKNOWN and _inputs(loop, view)):
            return
        if not over_batches(loop):
            yield loop


def _inputs(loop: ast.For | ast.AsyncFor | ast.comprehension, view: FunctionView) -> bool:
    """Whether the loop goes over a list of what models are asked about: texts, arrays."""
    value = view.value(loop.iter)
    return (
        value.kind is Kind.SEQUENCE and value.element is not None and value.element.kind in (Kind.STRING, Kind.NDARRAY)
    )


def over_batches(loop: ast.For | ast.AsyncFor | ast.comprehension) -> bool:
    """Whether the loop goes over batches already: loaders, chunks, or a range with a step."""
    if isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 3:
        name = getattr(loop.iter.func, "id", getattr(loop.iter.func, "attr", ""))
        if name in ("range", "trange"):
            return True
    words = [*target_names(loop.target)]
    for node in ast.walk(loop.iter):
        if isinstance(node, ast.Name):
            words.append(node.id)
        elif isinstance(node, ast.Attribute):
            words.append(node.attr)
    return any(_BATCHED.search(word.lower()) and "batch_size" not in word.lower() for word in words)


def depends_on(call: ast.Call, names: frozenset[str], loop: ast.AST) -> bool:
    """Whether an argument uses one of the names, directly or through names bound in the loop's body."""
    reached = set(names)
    for statement in loop_body(loop):
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign) and names_in(node.value) & reached:
                for target in node.targets:
                    reached |= target_names(target)
    return bool(fed(call) & reached)


def fed(call: ast.Call) -> frozenset[str]:
    """Names that the arguments of a call use."""
    return frozenset().union(*map(names_in, [*call.args, *(k.value for k in call.keywords)]))


def carries_state(call: ast.Call, loop: ast.AST, view: FunctionView) -> bool:
    """Whether a pass of the loop needs the result of the one before: what the call returns flows into its arguments."""
    produced: set[str] = set()
    bound_before: set[str] = set()
    for statement in loop_body(loop):
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
                source = node.value
                if source is None:
                    continue
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                bound = frozenset().union(*(target_names(t) for t in targets))
                if any(part is call for part in ast.walk(source)) or names_in(source) & produced:
                    produced |= bound
                elif node.lineno < call.lineno:
                    bound_before |= bound
    return bool(fed(call) & produced - bound_before)
