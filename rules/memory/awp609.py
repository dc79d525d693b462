"""AWP609 offloaded-weights."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, MarkKind, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate
from awp_lint.rules.common import IDLE, argument, callee, short
from awp_lint.rules.serving.enginerule import EngineRule, reason_given

_METHODS = {
    "enable_sequential_cpu_offload": "copies every layer to the device for each of its calls",
    "enable_model_cpu_offload": "copies each model to the device and back for every request",
    "enable_group_offload": "copies groups of layers to the device for each of their calls",
}
_FUNCTIONS = {
    "accelerate.cpu_offload": "copies every layer to the device for each of its calls",
    "accelerate.disk_offload": "reads every layer from disk for each of its calls",
}
_SPILLS = ("cpu", "disk")


class OffloadedWeights(EngineRule):
    """Weights kept on the host and copied to the device as they are used."""

    id = "AWP609"
    name = "offloaded-weights"
    root_cause = RootCause.MEMORY
    confidence = Confidence.MEDIUM
    cost_us = 50000.0
    mark = MarkKind.CALL
    calls = EngineRule.calls | frozenset({
        *_METHODS, *(name.rpartition(".")[2] for name in _FUNCTIONS), "from_pretrained", "dispatch_model",
        "load_checkpoint_and_dispatch",
    })  # fmt: skip
    words = (b"_offload", b"device_map", b"offload_folder")

    effect = "keeps weights on the host and copies them to the device at every step"
    setting_confidence = Confidence.LOW
    advice = "where the weights fit into the device's memory, remove it (or quantise them)"

    summary = "weights are kept on the host and copied to the device as they are used"
    what = """
        `enable_model_cpu_offload()`, `enable_sequential_cpu_offload()`, accelerate's `cpu_offload`, a `device_map` that
        puts modules on `"cpu"` or `"disk"` beside a device, `cpu_offload_gb` of a serving engine.
        """
    why = """
        Every request, or every step, copies the weights over PCIe, at some 25 GB/s where the device's memory gives
        thousands: the device waits most of the time.
        """
    fine = """
        - Weights that do not fit into the device's memory. No code tells how much memory there is, so these are shown
          at low confidence, with one exception: a pipeline that the same function has already moved to the device whole
          evidently fits.
        """
    safety = """
        A recommendation only: remove the offload where memory allows; quantised weights may make it allow.
        """
    references = (
        "https://huggingface.co/docs/diffusers/optimization/memory",
        "https://huggingface.co/docs/accelerate/concept_guides/big_model_inference",
        "https://docs.vllm.ai/en/latest/configuration/conserving_memory.html",
    )
    bad = """
        import torch
        from diffusers import DiffusionPipeline

        pipe = DiffusionPipeline.from_pretrained("sd", torch_dtype=torch.float16).to("cuda")
        pipe.enable_model_cpu_offload()
        """
    good = """
        import torch
        from diffusers import DiffusionPipeline

        pipe = DiffusionPipeline.from_pretrained("sd", torch_dtype=torch.float16).to("cuda")
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        yield from super().candidates(node, view, file)
        effect = self._effect(node, view)
        if effect is None or view.regions(node) & IDLE:
            return
        moved = _moved_whole(node, view)
        sure = moved is not None and not reason_given(file.text, node.lineno)
        yield Candidate(
            node=node,
            message=f"`{short(node)}` {effect}" + (f", after line {moved.lineno} moved it whole" if moved else ""),
            action=self.advice,
            confidence=self.confidence if sure else Confidence.LOW,
            frequency=view.frequency(node),
            why=("it has been on the device whole",) if moved else ("whether memory is short is not known",),
        )

    def _effect(self, call: ast.Call, view: FunctionView) -> str | None:
        name = callee(call)
        if isinstance(call.func, ast.Attribute) and name in _METHODS:
            return _METHODS[name]
        effect = _FUNCTIONS.get(view.qualified(call.func) or "")
        if effect is not None:
            return effect
        places = argument(call, None, "device_map")
        if isinstance(places, ast.Dict):
            values = {str(v.value) for v in places.values if isinstance(v, ast.Constant)}
            if values & set(_SPILLS) and values - set(_SPILLS):
                return "puts some of the modules on the host"
        return None


def _moved_whole(call: ast.Call, view: FunctionView) -> ast.Call | None:
    """The call before it that moved the same object to the device: ``pipe.to("cuda")``."""
    if not isinstance(call.func, ast.Attribute):
        return None
    owner = call.func.value
    text = ast.unparse(owner)
    for other in view.nodes(ast.Call):
        assert isinstance(other, ast.Call)
        if other.lineno >= call.lineno or callee(other) not in ("to", "cuda") or not _to_device(other):
            continue
        statement = view.statement(other)
        targets = [ast.unparse(t) for t in statement.targets] if isinstance(statement, ast.Assign) else []
        assert isinstance(other.func, ast.Attribute)
        if text in targets or ast.unparse(other.func.value) == text:
            return other
    return None


def _to_device(call: ast.Call) -> bool:
    if callee(call) == "cuda":
        return isinstance(call.func, ast.Attribute)
    first = call.args[0] if call.args else argument(call, None, "device")
    return (
        isinstance(call.func, ast.Attribute)
        and isinstance(first, ast.Constant)
        and isinstance(first.value, str)
        and first.value.startswith(("cuda", "xpu", "mps"))
    )
