"""AWP802 load-per-request."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, Import, MarkKind, RootCause, Safety
from awp_lint.detector.semantics.library import last_names, lookup
from awp_lint.detector.semantics.values import Certainty
from awp_lint.detector.semantics.view import FileView, FunctionView, Level
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import IDLE, ancestors, assigned_name, callee, frequency_reason, names_in, short
from awp_lint.rules.edits import cached_function, fresh_name

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_LOADERS = frozenset({
    "torch.load", "torch.jit.load", "torch.hub.load", "whisper.load_model", "spacy.load", "easyocr.Reader",
    "ultralytics.YOLO", "onnxruntime.InferenceSession", "faster_whisper.WhisperModel", "vllm.LLM", "sglang.Engine",
    "timm.create_model", "open_clip.create_model_and_transforms", "clip.load", "insightface.app.FaceAnalysis",
    "llama_cpp.Llama", "ctranslate2.Generator", "ctranslate2.Translator", "safetensors.torch.load_file",
    "transformers.pipeline", "sentence_transformers.SentenceTransformer", "sentence_transformers.CrossEncoder",
    "keybert.KeyBERT", "flair.models.SequenceTagger.load", "TTS.api.TTS", "paddleocr.PaddleOCR",
})  # fmt: skip
_LIBRARIES = ("transformers.", "diffusers.", "peft.", "optimum.", "tokenizers.", "speechbrain.", "nemo.")


class LoadPerRequest(Rule):
    """A model or tokenizer built anew for every request."""

    id = "AWP802"
    name = "load-per-request"
    root_cause = RootCause.SCHEDULING
    cost_us = 500000.0
    event = Event.HOST
    mark = MarkKind.CALL
    words = (
        *(b"from_pretrained", b"load", b"pipeline(", b"SentenceTransformer", b"YOLO", b"LLM(", b"Reader("),
        *(b"create_model", b"InferenceSession", b"WhisperModel"),
    )
    nodes = (ast.Call,)

    summary = "a model or tokenizer is loaded for every request"
    what = """
        `from_pretrained`, `pipeline(...)`, `torch.load`, `SentenceTransformer(...)`, `whisper.load_model` and the like
        in a route handler, a predictor's `predict`, or what they call.
        """
    why = """
        Reading, checking and copying weights takes seconds where the inference takes milliseconds; the old copy is
        freed only when Python gets to it, so that memory holds two; caches, compiled code and captured graphs start
        from nothing.
        """
    fine = """
        - Loading at start-up, in `__init__`, in a `lifespan` or `startup` hook.
        - Lazy loading behind `if model is None`, in `lru_cache` functions and in caches by name.
        - Offline scripts, which load once a run; files that come with the request.
        """
    safety = """
        Unsafe: what depends on no argument of the handler is loaded by a function with a cache, at the first request,
        where requests may share it. Otherwise a recommendation: load at start-up (module level, `lifespan`).
        """
    references = ("https://fastapi.tiangolo.com/advanced/events/",)
    bad = """
        from fastapi import FastAPI
        from transformers import pipeline

        app = FastAPI()

        @app.post("/classify")
        def classify(text: str) -> list:
            classifier = pipeline("text-classification", model="classifier", device=0)
            return classifier(text)
        """
    good = """
        from fastapi import FastAPI
        from transformers import pipeline

        app = FastAPI()
        classifier = pipeline("text-classification", model="classifier", device=0)

        @app.post("/classify")
        def classify(text: str) -> list:
            return classifier(text)
        """

    @classmethod
    def asked_about(cls) -> frozenset[str]:
        return last_names("loads") | {name.rpartition(".")[2] for name in _LOADERS}

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        what = _loads(node, view, file)
        if what is None or view.regions(node) & IDLE or _kept(node, view):
            return
        frequency = view.frequency(node)
        if not frequency.known or Level.REQUEST not in frequency.path:
            return
        if (
            frequency.path == (Level.REQUEST,)
            and frequency.chain
            and frequency.chain[0].function in ("main", "<module>")
        ):
            return  # a program that does its work once
        confidence = Confidence.LOW
        if frequency.certainty is Certainty.PROVEN:
            confidence = Confidence.HIGH
            if what == "a file":  # only a fixed path is the same file each time; others may come with the request
                fixed = bool(node.args) and isinstance(node.args[0], ast.Constant)
                confidence = Confidence.MEDIUM if fixed else Confidence.LOW
        yield Candidate(
            node=node,
            message=f"`{short(node.func, 50)}(...)` loads {what} for every request",
            action="load it once at start-up and keep it",
            confidence=confidence,
            frequency=frequency,
            why=frequency_reason(frequency),
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        load, view = candidate.node, definition.view
        assert isinstance(load, ast.Call)
        load = _with_moves(load, view)
        top = {name for statement in definition.file.tree.body for name in _bound_by(statement)} | set(
            definition.file.imports
        )
        if not names_in(load) <= top or any(view.assignments(name) for name in names_in(load)):
            return None  # what is loaded depends on the request
        name = fresh_name(f"_load_{assigned_name(view, load) or 'model'}", definition, definition.range(load))
        loader = cached_function(name, (), definition.text(load), definition)
        if loader is None or _has_parameter(view, names_in(load)):
            return None
        return Fix(
            title="load it with the first request and keep it",
            safety=Safety.UNSAFE,
            edits=(loader, definition.replace(load, f"{name}()")),
            imports=(Import("functools"),),
            effects=(Effect.MEMORY, Effect.ALIASING),
            requires=("requests may share it: none of them changes it",),
        )


_MOVES = frozenset({"to", "cuda", "eval", "half", "bfloat16", "float"})


def _with_moves(load: ast.Call, view: FunctionView) -> ast.Call:
    """The load with the moves and casts that are chained to it."""
    while True:
        attribute = view.parent(load)
        call = view.parent(attribute) if isinstance(attribute, ast.Attribute) and attribute.attr in _MOVES else None
        if not isinstance(call, ast.Call) or call.func is not attribute:
            return load
        load = call


def _bound_by(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return []


def _has_parameter(view: FunctionView, names: frozenset[str]) -> bool:
    if isinstance(view.node, ast.Module):
        return True
    arguments = view.node.args
    return any(a.arg in names for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _kept(node: ast.AST, view: FunctionView) -> bool:
    """Whether the call fills something lasting that a test found missing: ``if name not in cache: cache[name] = …``."""
    shared = {name for statement in view.nodes(ast.Global, ast.Nonlocal) for name in getattr(statement, "names", ())}
    child = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.ExceptHandler):
            return True
        if isinstance(parent, ast.If) and child is not parent.test and _asks_for_absence(parent.test):
            for part in ast.walk(parent):
                if isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store):
                    return True
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.id in shared:
                    return True
        child = parent
    return False


def _asks_for_absence(test: ast.expr) -> bool:
    for part in ast.walk(test):
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Is | ast.NotIn | ast.NotEq | ast.In):
            return True
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
            return True
    return False


def _loads(call: ast.Call, view: FunctionView, file: FileView) -> str | None:
    """What a call loads."""
    dotted = view.qualified(call.func)
    if dotted is None:
        return None
    if callee(call) == "from_pretrained":
        if not dotted.startswith(_LIBRARIES):
            return None
        owner = dotted.split(".")[-2]
        if owner.endswith(("Config", "Scheduler")):
            return None
        return "a tokenizer" if owner.endswith(("Tokenizer", "TokenizerFast", "Processor", "Extractor")) else "a model"
    if dotted in _LOADERS:
        return "a file" if dotted in ("torch.load", "safetensors.torch.load_file") else "a model"
    fact = lookup(dotted, file.target)
    if fact is not None and "loads" in fact.effects:
        return "a model"
    return None
