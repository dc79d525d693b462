"""AWP401 uncaptured-decode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.values import Certainty, Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.batching.calls import carries_state, model_call
from awp_lint.rules.common import IDLE, callee, frequency_reason, judge, loop_body, lower, short
from awp_lint.rules.serving.handlers import own_functions

#: Signs that somebody in the file compiles or captures already.
_COMPILES = re.compile(r"torch\.compile|\.compile\(|make_graphed_callables|cuda_?graph", re.IGNORECASE)
#: Classes of whole models, which generation runs once a token.
_WHOLE = re.compile(r"(Model|Decoder|Transformer|LM)$")
_STEPS = {LoopKind.TOKENS: "token", LoopKind.STEPS: "step"}


class UncapturedDecode(Rule):
    """A loop of small forwards, every kernel launched by Python."""

    id = "AWP401"
    name = "uncaptured-decode"
    root_cause = RootCause.RUNTIME
    confidence = Confidence.MEDIUM
    cost_us = 2000.0
    event = Event.LAUNCHES
    mark = MarkKind.LOOP
    words = (b"for ", b"while ")
    nodes = (ast.For, ast.While)

    summary = "a decode or denoising loop launches every kernel from Python: neither compiled nor captured"
    what = """
        A loop over tokens, denoising steps or frames that calls a model, in a program (something with an entry point),
        where neither `torch.compile` nor a CUDA graph is in sight.
        """
    why = """
        A decode step of a 1B model launches about a thousand kernels of a few microseconds each; Python and the driver
        need longer to launch them than the device to run them, so the device idles most of the step (measured on an
        H200: busy 2.4 ms of 14–25 ms; the same step as a graph takes 3.2 ms).
        """
    fine = """
        - Models compiled elsewhere, or engines that capture by themselves.
        - Large batches or long prompts: the kernels are long enough to hide the launches; a run tells.
        - Library code that leaves compiling to its users: shown at low confidence only.
        - Loops along an axis of a tensor of which no pass needs the one before: they want a batch (low confidence).
        """
    safety = """
        Unsafe: the step-loop patch. A small helper module is written beside the loop; it captures the step as a CUDA
        graph for each shape, keeps its inputs in static buffers, and calls through where there is no CUDA device, where
        gradients are wanted or where a capture fails. It is offered only where all code below the step is seen and
        understood: no reads on the host, no writes to Python state, positions and lengths that can live on the device.
        Else the finding says what stands in the way.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs",
        "huggingface/diffusers#9475 a video pipeline after its loop was cleaned and compiled",
        "huggingface/transformers#40328 where a static cache does not pay",
    )
    bad = """
        import torch
        from transformers import AutoModelForCausalLM

        def complete(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
            cache = None
            for _ in range(max_new_tokens):
                out = model(input_ids[:, -1:], past_key_values=cache)
                cache = out.past_key_values
                input_ids = torch.cat([input_ids, out.logits[:, -1].argmax(-1, keepdim=True)], dim=1)
            return input_ids

        if __name__ == "__main__":
            lm = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()
            while True:
                prompt = torch.tensor([[int(word) for word in input().split()]], device="cuda")
                print(complete(lm, prompt, 64))
        """
    good = """
        import torch
        from transformers import AutoModelForCausalLM

        def complete(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
            cache = None
            for _ in range(max_new_tokens):
                out = model(input_ids[:, -1:], past_key_values=cache)
                cache = out.past_key_values
                input_ids = torch.cat([input_ids, out.logits[:, -1].argmax(-1, keepdim=True)], dim=1)
            return input_ids

        if __name__ == "__main__":
            lm = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()
            lm.forward = torch.compile(lm.forward, mode="reduce-overhead")
            while True:
                prompt = torch.tensor([[int(word) for word in input().split()]], device="cuda")
                print(complete(lm, prompt, 64))
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.For | ast.While)
        kind = view.loop_kind(node)
        if kind not in _STEPS or _COMPILES.search(file.text):
            return
        regions = view.regions(node)
        if regions & (IDLE | Region.COMPILED | Region.CAPTURED):
            return
        call = _model_in(node, view)
        step = None if call is not None or kind is not LoopKind.TOKENS else _step_in(node, view, file)
        if step is not None:
            call = step[0]
        if call is None:
            return
        frequency = view.frequency(call)
        if frequency.known and not frequency.path:
            return
        confidence = lower(self.confidence, judge(frequency))
        if frequency.certainty is not Certainty.PROVEN or _apart(call, node):
            confidence = Confidence.LOW
        if not _is_module(*(step[1:] if step is not None else (call, view))):
            confidence = Confidence.LOW
        name = short((call if step is None else step[1]).func, 40)
        unit = _STEPS[kind]
        yield Candidate(
            node=node,
            message=f"`{name}(...)` launches every kernel from Python once a {unit}, neither compiled nor captured",
            action=f'compile `{name}` (`mode="reduce-overhead"`, static shapes) or capture the {unit} as a CUDA graph',
            confidence=confidence,
            frequency=frequency,
            why=(f"`{name}` is a model and is called in a loop over {unit}s", *frequency_reason(frequency)),
        )


def _apart(call: ast.Call, loop: ast.For | ast.While) -> bool:
    """Whether the loop goes along an axis of a tensor and no pass needs the one before: rows for a batch, no steps."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or callee(loop.iter) != "range":
        return False
    sizes = [part for part in ast.walk(loop.iter) if _size(part)]
    return bool(sizes) and not carries_state(call, loop)


def _size(node: ast.AST) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "shape") or (
        isinstance(node, ast.Call) and callee(node) == "size"
    )


def _model_in(loop: ast.For | ast.While, view: FunctionView) -> ast.Call | None:
    """The first model call in the loop's body whose innermost loop this one is."""
    for statement in loop_body(loop):
        for part in ast.walk(statement):
            if isinstance(part, ast.Call) and view.parent(part) is not None and _runs_model(part, view):
                around = view.loops(part)
                if around and around[0] is loop:
                    return part
    return None


def _step_in(
    loop: ast.For | ast.While, view: FunctionView, file: FileView
) -> tuple[ast.Call, ast.Call, FunctionView] | None:
    """The first call in the loop of a method of the same object that runs a model: the call, the model's call in the
    method, and the method."""
    for statement in loop_body(loop):
        for part in ast.walk(statement):
            if not isinstance(part, ast.Call) or view.parent(part) is None or view.loops(part)[:1] != (loop,):
                continue
            owner = part.func.value if isinstance(part.func, ast.Attribute) else None
            if not isinstance(owner, ast.Name) or owner.id != "self":
                continue
            for method in own_functions(part, view, file):
                for inner in method.nodes(ast.Call):
                    if isinstance(inner, ast.Call) and not method.regions(inner) & IDLE and _runs_whole(inner, method):
                        return part, inner, method
    return None


def _runs_whole(call: ast.Call, view: FunctionView) -> bool:
    """Whether a model is called, by the name of what is called or by that of its class."""
    value = view.value(call.func)
    return _runs_model(call, view) or (value.kind is Kind.MODULE and bool(_WHOLE.search(value.cls or "")))


def _runs_model(call: ast.Call, view: FunctionView) -> bool:
    return model_call(call, view) is not None or (
        _is_module(call, view) and view.value(call.func).kind is not Kind.MODULE
    )


def _is_module(call: ast.Call, view: FunctionView) -> bool:
    """Whether a module is called: by its value, or since all that the call can reach is a ``forward``."""
    if view.value(call.func).kind is Kind.MODULE:
        return True
    reached = view.targets(call)
    return bool(reached) and all(name.endswith(".forward") for name in reached)
