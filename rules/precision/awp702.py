"""AWP702 training-mode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import argument, callee, frequency_reason
from awp_lint.rules.edits import insert_after
from awp_lint.rules.memo import says
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.precision.alike import alike_in_training
from awp_lint.rules.precision.modes import trains

_EVAL = re.compile(r"\.eval\(\)|\.train\(\s*(mode\s*=\s*)?False|\.training\s*=\s*False|jit\.freeze")
_TRAIN = re.compile(r"\.train\(\s*(True)?\s*\)|\.fit\(|LightningModule")
_HARMLESS = frozenset(
    {"print", "len", "compile", "DataParallel", "save", "summary", "type", "isinstance", "id", "repr"}
)


@dataclass(frozen=True, slots=True)
class _Model:
    """``text`` is how the program names the model, ``built`` the statement after which it should be in eval mode."""

    text: str
    built: ast.stmt
    cls: str | None = None  # where it is known


class TrainingMode(Rule):
    """A model that is loaded for inference and never put into eval mode."""

    id = "AWP702"
    name = "training-mode"
    root_cause = RootCause.COMPUTE
    cost_us = 300.0
    event = Event.NONE
    anywhere = True
    words = (b"load_state_dict", b"torchvision", b"timm")
    nodes = (ast.Call,)

    summary = "a model is used for inference in training mode"
    what = """
        A model that gets its weights by `load_state_dict`, or is built by `torchvision.models` or `timm`, and is called
        in the same file without gradients or in a handler, where nothing ever calls `eval()`.
        """
    why = """
        In training mode dropout draws random numbers and multiplies, batch normalisation computes statistics of the
        batch and updates its buffers: extra kernels in every layer, and results that depend on the other items of the
        batch. Attention modules also take their slow paths.
        """
    fine = """
        - `from_pretrained`, pipelines, `torch.jit.load`, `SentenceTransformer`: they come in eval mode.
        - Training code, and models that are handed to a function that may switch the mode (low confidence).
        - Models of which all layers do the same in both modes, as far as their file shows: no dropout, no batch
          normalisation, nothing from elsewhere.
        - Parts of a module, which `eval()` of the whole reaches: low confidence.
        - Dropout on purpose (Monte Carlo dropout): silence the finding with a comment that says so.
        """
    safety = """
        Unsafe: `eval()` changes the results, to what they were meant to be.
        """
    references = ("https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval",)
    bad = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.fc = nn.Linear(8, 2)
                self.drop = nn.Dropout(0.1)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.drop(self.fc(x))

        model = Net().to("cuda")
        model.load_state_dict(torch.load("weights.pt"))

        @torch.inference_mode()
        def predict(x: torch.Tensor) -> torch.Tensor:
            return model(x.to("cuda"))
        """
    good = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.fc = nn.Linear(8, 2)
                self.drop = nn.Dropout(0.1)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.drop(self.fc(x))

        model = Net().to("cuda")
        model.load_state_dict(torch.load("weights.pt"))
        model.eval()

        @torch.inference_mode()
        def predict(x: torch.Tensor) -> torch.Tensor:
            return model(x.to("cuda"))
        """

    def concerns(self, view: FunctionView, file: FileView) -> bool:
        known: bool | None = file.memo.get(TrainingMode)
        if known is None:
            spoken = (
                says(file, _EVAL, ".eval()", ".train", "jit.freeze")
                or says(file, _TRAIN, ".train(", ".fit(", "LightningModule")
                or trains(file)
            )
            known = file.memo[TrainingMode] = not spoken
        return known

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        model = _model(node, view)
        if model is None:
            return
        if view.regions(node) & (Region.TEST | Region.TRAINING | Region.TIMED | Region.EXPORT):
            return
        if model.cls is not None and alike_in_training(model.cls, file):
            return
        infers, escapes = _used(model.text, file, node)
        if not infers:
            return
        frequency = view.frequency(node)
        yield Candidate(
            node=node,
            message=f"`{model.text}` infers in training mode: nothing calls `{model.text}.eval()`",
            action=f"call `{model.text}.eval()` once it is loaded",
            confidence=Confidence.LOW if escapes or _put_with_its_owner(model, view) else Confidence.MEDIUM,
            frequency=frequency,
            why=(
                "a module starts in training mode, and loading weights does not change that",
                *frequency_reason(frequency),
            ),
            data=model,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        model = candidate.data
        if not isinstance(model, _Model):
            return None
        edit = insert_after(model.built, f"{model.text}.eval()", definition)
        if edit is None:
            return None
        return Fix(
            title=f"put `{model.text}` into eval mode",
            safety=Safety.UNSAFE,
            edits=(edit,),
            effects=(Effect.NUMERICS, Effect.RNG),
        )


def _model(call: ast.Call, view: FunctionView) -> _Model | None:
    """The model that a call loads or builds in training mode."""
    name = callee(call)
    statement = view.statement(call)
    if name == "load_state_dict" and isinstance(call.func, ast.Attribute):
        owner = call.func.value
        if not isinstance(owner, ast.Name | ast.Attribute) or view.value(owner).kind is not Kind.MODULE:
            return None
        cls = view.value(owner).cls or ""
        text = ast.unparse(owner)
        if text == "self" or cls.startswith(("transformers.", "diffusers.", "torch.")):
            return None
        return _Model(text, statement, cls or None)
    weights = argument(call, None, "weights") or argument(call, None, "pretrained")
    if weights is None or (isinstance(weights, ast.Constant) and not weights.value):
        return None
    dotted = view.qualified(call.func) or ""
    built = dotted.startswith("torchvision.models.") and name[:1].islower() and not name.startswith("get_")
    if not (built or dotted == "timm.create_model"):
        return None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Name | ast.Attribute):
            return _Model(ast.unparse(target), statement)
    return None


def _put_with_its_owner(model: _Model, view: FunctionView) -> bool:
    """Whether a model is a part of a module, whose own `eval()` reaches it."""
    owned = model.text.startswith("self.")
    return owned and any(base.startswith("torch.nn.") or base.endswith(".Module") for base in view.class_bases)


def _used(text: str, file: FileView, loading: ast.Call) -> tuple[bool, bool]:
    """Whether the file calls the model for inference, and whether it hands it to someone else."""
    infers = escapes = False
    for view in file.functions():
        for call in view.nodes(ast.Call):
            assert isinstance(call, ast.Call)
            if ast.unparse(call.func) == text:
                frequency = view.frequency(call)
                if view.regions(call) & Region.INFERENCE or (frequency.known and frequency.served):
                    infers = True
            elif call is not loading and callee(call) not in _HARMLESS:
                for part in (*call.args, *(k.value for k in call.keywords)):
                    if isinstance(part, ast.Name | ast.Attribute) and ast.unparse(part) == text:
                        escapes = True
    return infers, escapes
