"""AWP704 cast-in-loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.values import Device, Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    ancestors,
    argument,
    frequency_reason,
    hot_frequency,
    lower,
    often,
    short,
    sureness,
)
from awp_lint.rules.fusion.context import place
from awp_lint.rules.precision.modes import wants_float32
from awp_lint.rules.precision.routers import small_router

_AUTOCAST = frozenset({"torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"})
_CASTS = frozenset({"to", "float", "half", "bfloat16", "type"})
_WEIGHTS = frozenset({"weight", "bias", "in_proj_weight", "in_proj_bias"})


class CastInLoop(Rule):
    """Weights cast again at every step."""

    id = "AWP704"
    name = "cast-in-loop"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.MEDIUM
    cost_us = 400.0
    event = Event.LAUNCHES
    mark = MarkKind.STATEMENT
    words = (b"autocast", b".weight", b".bias")
    nodes = (ast.With, ast.Call)
    calls = frozenset(_CASTS)
    doubted = True

    summary = "weights are cast again at every step"
    what = """
        `torch.autocast` entered inside a loop over steps, tokens, layers or batches, around a model call, and
        `self.weight.float()` or `self.weight.to(torch.bfloat16)` in the `forward` of a layer.
        """
    why = """
        Autocast keeps the weights it has cast until its outermost context ends; entered anew in every pass, it casts
        every weight again: one launch for each parameter, and a read and a write of all of them. A cast in `forward`
        does the same for one layer.
        """
    fine = """
        - One autocast around the whole loop; nested contexts inside it (the cache lives as long as the outermost one);
          `cache_enabled=False` on purpose.
        - `self.weight.to(x.dtype)`: nothing happens where the types agree, so it is shown at low confidence.
        - Classes and functions that want float32 by their names (`Float32Linear`): low confidence.
        - Weights that the model keeps in float32 whatever it is loaded in (`_keep_in_fp32_modules_strict`).
        - Norm layers that keep a small weight in float32 (a vector, not a matrix): low confidence.
        - Weights of routers that are small by the model's configuration, or of a size that is not told: low confidence.
          Readers of such findings did not agree whether one small cast in each layer is worth saying.
        - Autocast that an option or the number of the pass switches (`enabled=self.use_half`): low confidence.
        - Training, tests, compiled regions.
        """
    safety = """
        No automatic rewrite: enter autocast once around the loop, or cast the model once after loading
        (`model.to(torch.bfloat16)`). No diff, since a kept cast goes stale when weights are loaded or trained.
        """
    references = ("https://docs.pytorch.org/docs/stable/amp.html#torch.autocast",)
    bad = """
        import torch

        @torch.inference_mode()
        def denoise(unet: torch.nn.Module, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
            latents = latents.to("cuda")
            for t in range(num_inference_steps):
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    noise = unet(latents, t)
                latents = latents - 0.1 * noise
            return latents
        """
    good = """
        import torch

        @torch.inference_mode()
        def denoise(unet: torch.nn.Module, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
            latents = latents.to("cuda")
            with torch.autocast("cuda", dtype=torch.bfloat16):
                for t in range(num_inference_steps):
                    noise = unet(latents, t)
                    latents = latents - 0.1 * noise
            return latents
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if isinstance(node, ast.With):
            yield from self._autocast(node, view)
        elif isinstance(node, ast.Call):
            yield from self._weight(node, view, file)

    def _autocast(self, node: ast.With, view: FunctionView) -> Iterator[Candidate]:
        if not any(_opens(item.context_expr, view) for item in node.items) or not view.loops(node):
            return
        loop = view.loops(node)[0]
        kind = view.loop_kind(loop)
        if any(
            isinstance(p, ast.With) and any(_opens(item.context_expr, view) for item in p.items)
            for p in ancestors(view, node)
        ):
            return
        model = _module_call(node, view)
        if model is None:
            return
        frequency = hot_frequency(view, node.body[0])
        if frequency is None:
            return
        level = sureness(view, node, frequency)
        if any(_by_option(item.context_expr) for item in node.items):
            level = Confidence.LOW
        if kind in (LoopKind.UNKNOWN, LoopKind.EPOCHS, LoopKind.RETRIES, LoopKind.FIXED):
            level = lower(level, Confidence.LOW)
        yield Candidate(
            node=node,
            message=f"autocast is entered {often(frequency)} and casts the weights of `{short(model, 40)}` each time",
            action="enter it once around the loop, or cast the model once after loading",
            confidence=lower(self.confidence, level),
            frequency=frequency,
            why=frequency_reason(frequency),
        )

    def _weight(self, node: ast.Call, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        func = node.func
        if not isinstance(func, ast.Attribute) or func.attr not in _CASTS or not isinstance(func.value, ast.Attribute):
            return
        weight = func.value
        if weight.attr not in _WEIGHTS or not isinstance(weight.value, ast.Name | ast.Attribute):
            return
        dtype = argument(node, 0, "dtype")
        if func.attr == "to" and dtype is None:
            return
        dotted = "" if dtype is None else view.qualified(dtype) or ""
        fixed = func.attr != "to" or (dotted.startswith("torch.") and not dotted.startswith("torch.Tensor"))
        counted = place(view, node)
        if counted is None or not fixed:
            return
        frequency, cap = counted
        value = view.value(weight)
        if value.device is Device.HOST or value.kind not in (Kind.TENSOR, Kind.UNKNOWN):
            return
        # A vector in float32 is how norms are written; only a matrix is worth a word.
        wanted = _multiplied(node, view) and not wants_float32(view) and not _kept_in_float32(view, file)
        wanted = wanted and not small_router(weight, view, file)
        cap = lower(cap, Confidence.MEDIUM if wanted else Confidence.LOW)
        yield Candidate(
            node=node,
            message=f"`{short(node)}` casts the weight {often(frequency)}".rstrip(),
            action=f"keep `{short(weight, 40)}` in that type",
            confidence=lower(self.confidence, cap, sureness(view, node, frequency)),
            frequency=frequency,
            why=frequency_reason(frequency),
        )


_KEPT = re.compile(r"_keep_in_fp32_modules(?:_strict)?\s*(?::[^=\n]*)?=\s*[\[({]([^\])}]*)[\])}]")


def _kept_in_float32(view: FunctionView, file: FileView) -> bool:
    """Whether a model of the file loads this module's weight in float32: the cast finds nothing to do."""
    if view.class_name is None or "_keep_in_fp32_modules" not in file.text:
        return False
    own = view.class_name.rpartition(".")[2]
    held = set(re.findall(rf"\bself\.(\w+)\s*=\s*{re.escape(own)}\(", file.text))
    for listed in _KEPT.findall(file.text):
        for entry in re.findall(r"[\"']([^\"']+)[\"']", listed):
            parts = entry.split(".")
            if parts[-1] in held or (len(parts) > 1 and parts[-1] == "weight" and parts[-2] in held):
                return True
    return False


def _opens(node: ast.expr, view: FunctionView) -> bool:
    """Whether a context manager is an autocast that caches."""
    if not isinstance(node, ast.Call) or view.qualified(node.func) not in _AUTOCAST:
        return False
    return not any(
        keyword.arg in ("enabled", "cache_enabled")
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value is False
        for keyword in node.keywords
    )


def _by_option(node: ast.expr) -> bool:
    """Whether an option, or the number of the pass, decides if it casts at all: ``enabled=self.use_half and i > 0``."""
    enabled = argument(node, None, "enabled") if isinstance(node, ast.Call) else None
    if enabled is None or isinstance(enabled, ast.Constant):
        return False
    return not any(word in ast.unparse(enabled) for word in ("device", "cuda"))


def _module_call(node: ast.With, view: FunctionView) -> ast.expr | None:
    for statement in node.body:
        for part in ast.walk(statement):
            if isinstance(part, ast.Call) and view.parent(part) is not None:
                value = view.value(part.func)
                if value.kind is Kind.MODULE:
                    return part.func
    return None


def _multiplied(node: ast.Call, view: FunctionView) -> bool:
    """Whether the cast weight goes into a matrix product."""
    parent = view.parent(node)
    while isinstance(parent, ast.Attribute):
        above = view.parent(parent)
        if not isinstance(above, ast.Call) or parent.attr not in ("t", "transpose", "T", "mT"):
            return False
        parent = view.parent(above)
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.MatMult)
    if isinstance(parent, ast.keyword):
        parent = view.parent(parent)
    if isinstance(parent, ast.Call):
        name = parent.func.attr if isinstance(parent.func, ast.Attribute) else getattr(parent.func, "id", "")
        return name in ("linear", "matmul", "mm", "bmm", "conv1d", "conv2d", "conv3d", "embedding", "einsum", "addmm")
    return False
