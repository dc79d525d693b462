"""AWP701 grad-tracking."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.finding import Confidence, Edit, Effect, Event, Fix, MarkKind, Related, RootCause, Safety
from awp_lint.detector.semantics.values import Certainty, Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.batching.calls import may_run_model, model_call
from awp_lint.rules.common import IDLE, callee, frequency_reason, lower, often, served_frequency, short, whole_program
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.precision.modes import called_off, callers_off, no_gradients

#: Methods that switch gradients off by themselves.
_OFF_INSIDE = frozenset({"generate", "transcribe", "encode", "predict"})
_OFF_CLASSES = ("diffusers.", "sentence_transformers.", "whisper.", "vllm.", "ultralytics.", "transformers.pipelines")
_INFERENCE_ONLY = re.compile(r"(Predictor|Inferencer|InferenceEngine)$")
#: Bases in libraries that are modules by their names; of others' wrappers for serving, which are not.
_MODULE_BY_NAME = re.compile(r"(?!(mlflow|pydantic)\.).*(Model|Module|Network|Net|Detector|Segmentor|Recognizer)")


@dataclass(frozen=True, slots=True)
class _Decorate:
    """Decorate the function."""


@dataclass(frozen=True, slots=True)
class _Swap:
    """Put ``inference_mode`` in the place of ``no_grad`` (the name only)."""

    name: ast.expr


class GradTracking(Rule):
    """Inference that records what a backward pass would need."""

    id = "AWP701"
    name = "grad-tracking"
    root_cause = RootCause.COMPUTE
    cost_us = 800.0
    event = Event.LAUNCHES
    mark = MarkKind.CALL
    words = (b"torch",)
    nodes = (ast.Call, ast.FunctionDef)

    summary = "inference runs with gradient tracking on"
    what = """
        A model called in served code (a route handler, a `predict`, a script's main path) outside
        `torch.inference_mode()` and `torch.no_grad()`, and `torch.no_grad()` on the methods of a class that by its name
        only infers.
        """
    why = """
        With gradients on, every operation builds a node of the autograd graph on the host and keeps its inputs alive
        until the result is dropped: more host time an operation, and activations of all layers in memory, which limits
        the batch. `inference_mode` also skips the version counters and view tracking that `no_grad` keeps.
        """
    fine = """
        - Callers or callees that switch gradients off: `generate`, pipelines, `SentenceTransformer.encode`. Callers in
          other files are not seen, so that findings behind them are shown at low confidence.
        - Models whose parameters do not require gradients; `torch.set_grad_enabled(False)` anywhere in the file.
        - Functions that are handed the model, or that make one of what they are handed, and that nothing shown calls:
          low confidence. So are models that are asked about what has just been brought to the host.
        - Methods of a class whose base in a library is a module by its name: low confidence.
        - Training, tests, and the `forward` of a module: its caller decides.
        - `no_grad` in libraries whose results may be fed into training.
        """
    safety = """
        Unsafe: the function gets the decorator `@torch.inference_mode()`; its results can then not be used in a
        computation that records gradients. Not for coroutines, which a decorator does not reach into.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html",
        "https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation",
        "mindee/doctr#1323 inference mode in predictors",
    )
    bad = """
        import torch
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained("encoder")
        model = AutoModel.from_pretrained("encoder").to("cuda").eval()

        def predict(texts: list[str]) -> list[float]:
            inputs = tokenizer(texts, padding=True, return_tensors="pt").to("cuda")
            return model(**inputs).last_hidden_state[:, 0].mean(-1).tolist()
        """
    good = """
        import torch
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained("encoder")
        model = AutoModel.from_pretrained("encoder").to("cuda").eval()

        @torch.inference_mode()
        def predict(texts: list[str]) -> list[float]:
            inputs = tokenizer(texts, padding=True, return_tensors="pt").to("cuda")
            return model(**inputs).last_hidden_state[:, 0].mean(-1).tolist()
        """

    def concerns(self, view: FunctionView, file: FileView) -> bool:
        if _INFERENCE_ONLY.search((view.class_name or "").rpartition(".")[2]):
            return True
        runs = isinstance(view.node, ast.FunctionDef | ast.AsyncFunctionDef)
        return runs and not no_gradients(file) and not _is_module(view, file)

    def convinced(self, view: FunctionView, file: FileView) -> bool:
        chain = view.frequency(view.node).chain  # a caller in another file may switch gradients off
        seen = all(frame.path == view.path or not frame.path.endswith(".py") for frame in chain)
        return seen or whole_program(view.frequency(view.node))

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if isinstance(node, ast.FunctionDef):
            if node is view.node:
                yield from self._no_grad(node, view)
            return
        assert isinstance(node, ast.Call)
        if not isinstance(view.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        if no_gradients(file) or _is_module(view, file) or not may_run_model(node):
            return
        regions = view.regions(node)
        if regions & (IDLE | Region.INFERENCE | Region.COMPILED | Region.CAPTURED):
            return
        frequency = served_frequency(view, node)
        if frequency is None or not _runs_model(node, view) or _first_call(view, file) is not node:
            return
        above, below = callers_off(view, frequency, file), called_off(view, node, file)
        if above is None and whole_program(frequency):
            above = view.callers().off
        if above or below:
            return
        confidence = Confidence.HIGH if frequency.certainty is Certainty.PROVEN else Confidence.MEDIUM
        if above is None or below is None or not frequency.known or _decided_by_callers(node, view):
            confidence = Confidence.LOW
        if view.value(node.func).certainty is not Certainty.PROVEN:
            confidence = lower(confidence, Confidence.MEDIUM)
        name = short(node.func, 40)
        others = [c for c in view.nodes(ast.Call) if c is not node and isinstance(c, ast.Call) and _runs_model(c, view)]
        wrap = "decorate the function with `@torch.inference_mode()`"
        if isinstance(view.node, ast.AsyncFunctionDef):
            wrap = "wrap the call in `with torch.inference_mode():`"
        yield Candidate(
            node=node,
            message=f"`{name}(...)` records gradients {often(frequency)}".rstrip(),
            action=wrap,
            confidence=confidence,
            frequency=frequency,
            why=("neither the function nor a caller in this file switches gradients off", *frequency_reason(frequency)),
            related=tuple(Related(view.path, c.lineno, f"`{short(c.func)}` too") for c in others[:4]),
            data=_Decorate() if isinstance(view.node, ast.FunctionDef) else None,
        )

    def _no_grad(self, node: ast.FunctionDef, view: FunctionView) -> Iterator[Candidate]:
        owner = (view.class_name or "").rpartition(".")[2]
        if not _INFERENCE_ONLY.search(owner):
            return
        for decorator in node.decorator_list:
            name = decorator.func if isinstance(decorator, ast.Call) else decorator
            if view.qualified(name) != "torch.no_grad" or view.regions(node) & (Region.TEST | Region.TRAINING):
                continue
            frequency = view.frequency(node)
            yield Candidate(
                node=decorator,
                message=f"`{owner}.{node.name}` only infers, yet `no_grad` keeps version counters and view tracking",
                action="use `torch.inference_mode()`",
                confidence=Confidence.MEDIUM,
                frequency=frequency,
                why=frequency_reason(frequency),
                mark=MarkKind.FUNCTION,
                data=_Swap(name),
            )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        data = candidate.data
        if isinstance(data, _Swap):
            edit = definition.replace(data.name, definition.torch_name("torch.inference_mode"))
        elif isinstance(data, _Decorate):
            function = definition.view.node
            assert isinstance(function, ast.FunctionDef)
            line = definition.source.line_text(function.lineno)
            if not line.lstrip().startswith("def"):
                return None
            indent = line[: len(line) - len(line.lstrip())].replace("\f", "")
            start = definition.source.line_starts[function.lineno - 1]
            name = definition.torch_name("torch.inference_mode")
            edit = Edit(start, start, f"{indent}@{name}(){definition.source.newline}")
        else:
            return None
        return Fix(
            title="run it in inference mode",
            safety=Safety.UNSAFE,
            edits=(edit,),
            effects=(Effect.STRUCTURE,),
            requires=("nothing computes gradients from the results",),
        )


def _runs_model(call: ast.Call, view: FunctionView) -> bool:
    """Whether a call runs a model that does not switch gradients off by itself."""
    if model_call(call, view) is None:
        return False
    if callee(call) in _OFF_INSIDE:
        return False
    func = call.func
    values = [view.value(func)] + ([view.value(func.value)] if isinstance(func, ast.Attribute) else [])
    if any(v.cls is not None and v.cls.startswith(_OFF_CLASSES) for v in values):
        return False
    return any(v.kind is Kind.MODULE for v in values)


def _decided_by_callers(call: ast.Call, view: FunctionView) -> bool:
    """Whether others decide about gradients: of a model that is a parameter, or is made of parameters alone, in a
    function that nothing shown calls; of a part of what is a module by its base's name. Or there are none, since what
    the model is given has just been brought to the host."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if any(isinstance(part, ast.Call) and callee(part) in ("cpu", "numpy") for part in given):
        return True
    root: ast.expr = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    definition = view.node
    if isinstance(definition, ast.Lambda | ast.Module):
        return False
    if isinstance(root, ast.Name) and root.id in ("self", "cls"):
        return any(map(_MODULE_BY_NAME.fullmatch, view.class_bases))
    arguments = definition.args
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    if view.frequency(call).chain:
        return False
    if isinstance(root, ast.Call):  # `Search(model, size).forward(x)`
        return bool(root.args) and isinstance(root.args[0], ast.Name) and root.args[0].id in names
    return isinstance(root, ast.Name) and root.id in names


def _first_call(view: FunctionView, file: FileView) -> ast.Call | None:
    for call in view.nodes(ast.Call):
        if isinstance(call, ast.Call) and _runs_model(call, view) and not view.regions(call) & Region.INFERENCE:
            return call
    return None


def _has_forward(view: FunctionView, file: FileView) -> bool:
    own = (view.class_name or "").rpartition(".")[2]
    classes = (s for s in file.tree.body if isinstance(s, ast.ClassDef) and s.name == own)
    return any(isinstance(s, ast.FunctionDef) and s.name == "forward" for cls in classes for s in cls.body)


def _is_module(view: FunctionView, file: FileView) -> bool:
    known: dict[tuple[str | None, frozenset[str]], bool] = file.memo.setdefault(_is_module, {})
    of_class = view.class_name, view.class_bases
    if of_class not in known:
        modules = (".Module", "LightningModule")
        # A base in a file that is not shown may be one: who has a `forward` and a base is called by others.
        forward = bool(view.class_bases) and _has_forward(view, file)
        known[of_class] = forward or any(b.startswith("torch.nn.") or b.endswith(modules) for b in view.class_bases)
    return known[of_class]
