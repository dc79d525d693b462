"""AWP210 two-pass-guidance."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.definition import descendants
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.batching.calls import model_call
from awp_lint.rules.common import (
    ancestors,
    frequency_reason,
    hot_frequency,
    judge,
    lower,
    names_in,
    often,
    short,
    target_names,
)

_SCALE = re.compile(r"scale|guidance|cfg|weight|strength", re.IGNORECASE)


class TwoPassGuidance(Rule):
    """Classifier-free guidance as two forwards of the same model."""

    id = "AWP210"
    name = "two-pass-guidance"
    root_cause = RootCause.SCHEDULING
    confidence = Confidence.MEDIUM
    cost_us = 8000.0
    event = Event.LAUNCHES
    mark = MarkKind.CALL
    words = (b"scale", b"guidance", b"cfg", b"lerp")
    nodes = (ast.BinOp, ast.Call)
    calls = frozenset({"lerp"})
    repeated = True

    summary = "guidance runs a model twice where one batch of two would serve"
    what = """
        Two calls of the same model in one step whose results are mixed by classifier-free guidance,
        `uncond + scale * (cond - uncond)` in any order.
        """
    why = """
        Each forward reads all weights and launches all kernels. As one batch of two, both halves share them; small
        batches of a model that is bound by launches or by memory then cost nearly half.
        """
    fine = """
        - The second call needs what the first gave, other weights, or a cache context of its own.
        - Memory for twice the activations is missing, or one forward fills the device already (large images, video):
          then nothing is gained. Where a branch decides whether the second call runs at all, the finding is shown at
          low confidence, since unguided requests must stay at one forward.
        """
    safety = """
        A recommendation only: concatenate inputs and conditions, call once, `chunk(2)` the result. Changes memory, and
        values within rounding.
        No diff, since both calls' conditions must have one length and the model must not tell its rows apart.
        """
    references = (
        "https://huggingface.co/docs/diffusers/using-diffusers/write_own_pipeline",
        "https://huggingface.co/docs/diffusers/api/pipelines/stable_diffusion/text2img",
    )
    bad = """
        import torch

        @torch.inference_mode()
        def sample(unet: torch.nn.Module, latents: torch.Tensor, cond, uncond, scheduler, timesteps, guidance_scale):
            for t in timesteps:
                noise_uncond = unet(latents, t, uncond)
                noise_cond = unet(latents, t, cond)
                noise = noise_uncond + guidance_scale * (noise_cond - noise_uncond)
                latents = scheduler.step(noise, t, latents)
            return latents
        """
    good = """
        import torch

        @torch.inference_mode()
        def sample(unet: torch.nn.Module, latents: torch.Tensor, cond, uncond, scheduler, timesteps, guidance_scale):
            both = torch.cat([uncond, cond])
            for t in timesteps:
                noise_uncond, noise_cond = unet(torch.cat([latents, latents]), t, both).chunk(2)
                noise = noise_uncond + guidance_scale * (noise_cond - noise_uncond)
                latents = scheduler.step(noise, t, latents)
            return latents
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.BinOp | ast.Call)
        mixed = _mixed(node)
        if mixed is None or isinstance(view.parent(node), ast.BinOp):
            return
        frequency = hot_frequency(view, node)
        if frequency is None:
            return
        calls = [found for name in sorted(mixed) if (found := _made_by(name, node, view)) is not None]
        if len(calls) != 2:
            return
        first, second = sorted(calls, key=lambda call: (call.lineno, call.col_offset))
        if ast.dump(first.func) != ast.dump(second.func) or first is second or _fed_by(second, first, view):
            return
        if not _same_inputs(first, second) or _in_contexts(first, second, view):
            return
        name = short(first.func, 40)
        branch = _enclosing(first, view, ast.If) is not _enclosing(second, view, ast.If)
        yield Candidate(
            node=second,
            message=f"`{name}(...)` runs twice (also in line {first.lineno}) for guidance {often(frequency)}".rstrip(),
            action=f"call `{name}` once with both halves concatenated, and `chunk(2)` the result",
            confidence=Confidence.LOW if branch else lower(self.confidence, judge(frequency)),
            frequency=frequency,
            why=(f"`{short(node)}` mixes the two", *frequency_reason(frequency)),
        )


def _mixed(node: ast.BinOp | ast.Call) -> frozenset[str] | None:
    """The two names that an expression mixes as guidance does."""
    if isinstance(node, ast.Call):
        if getattr(node.func, "attr", "") != "lerp" or "torch" not in ast.unparse(node.func) or len(node.args) != 3:
            return None
        a, b, scale = node.args
        names = {part.id for part in (a, b) if isinstance(part, ast.Name)}
        return frozenset(names) if len(names) == 2 and _SCALE.search(ast.unparse(scale)) else None
    if not isinstance(node.op, ast.Add | ast.Sub):
        return None
    operators = {part.op.__class__ for part in descendants(node) if isinstance(part, ast.BinOp)}
    if ast.Sub not in operators or ast.Mult not in operators:
        return None
    plain = [n for n in names_in(node) if not _SCALE.search(n)]
    return frozenset(plain) if len(plain) == 2 and _SCALE.search(ast.unparse(node)) else None


def _made_by(name: str, node: ast.AST, view: FunctionView) -> ast.Call | None:
    """The model call whose result a name holds: the last one assigned before the node, attributes and items ignored."""
    found: ast.Call | None = None
    for statement in view.assignments(name):
        if not isinstance(statement, ast.Assign) or statement.lineno > getattr(node, "lineno", 0):
            continue
        if any(part is node for part in ast.walk(statement)):
            continue
        value: ast.expr = statement.value
        while isinstance(value, ast.Subscript | ast.Attribute):
            value = value.value
        runs = isinstance(value, ast.Call) and (
            view.value(value.func).kind is Kind.MODULE or model_call(value, view) is not None
        )
        found = value if runs and isinstance(value, ast.Call) else None
    return found


def _fed_by(second: ast.Call, first: ast.Call, view: FunctionView) -> bool:
    """Whether the second call takes what the first gave."""
    made = target_names(view.statement(first))
    return bool(made & frozenset().union(*map(names_in, [*second.args, *(k.value for k in second.keywords)])))


def _same_inputs(first: ast.Call, second: ast.Call) -> bool:
    """Whether the calls share an argument, and differ in one at least."""
    one = {ast.dump(part) for part in [*first.args, *(k.value for k in first.keywords)]}
    other = {ast.dump(part) for part in [*second.args, *(k.value for k in second.keywords)]}
    return bool(one & other) and one != other


def _in_contexts(first: ast.Call, second: ast.Call, view: FunctionView) -> bool:
    """Whether either call runs in a context of its own (a cache for each half)."""
    held = [
        next((p for p in ancestors(view, c) if isinstance(p, ast.With | ast.AsyncWith)), None) for c in (first, second)
    ]
    return held[0] is not held[1]


def _enclosing(node: ast.AST, view: FunctionView, *kinds: type[ast.AST]) -> ast.AST | None:
    return next((parent for parent in ancestors(view, node) if isinstance(parent, kinds)), None)
