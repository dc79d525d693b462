"""AWP706 float64-on-device."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.values import Device, Kind, Value
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import argument, callee, frequency_reason, lower, often, served_frequency, short, sureness
from awp_lint.rules.flow import resolve
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.serving.enginerule import reason_given

_WIDE = frozenset({"torch.float64", "torch.double"})
#: NumPy functions that give float64 whatever they are given, or by default.
_NUMPY = frozenset({
    "linspace", "logspace", "geomspace", "hanning", "hamming", "zeros", "ones", "full", "eye", "sin", "cos", "exp",
    "log", "sqrt", "mean", "std",
})  # fmt: skip
_NUMPY_RANDOM = frozenset({"rand", "randn", "normal", "uniform", "random", "standard_normal"})


@dataclass(frozen=True, slots=True)
class _Wide:
    """A float64 tensor on the device: made by ``node``, its type chosen by ``dtype`` (None: inherited from NumPy)."""

    what: str
    dtype: ast.expr | None = None


class Float64OnDevice(Rule):
    """float64 tensors made or promoted on the device."""

    id = "AWP706"
    name = "float64-on-device"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.LOW
    cost_us = 60.0
    event = Event.LAUNCHES
    words = (b"float64", b".double(", b"torch.double", b"from_numpy", b"as_tensor", b"torch.tensor(")
    nodes = (ast.Call,)
    doubted = True

    summary = "float64 arithmetic on the device"
    what = """
        `.double()`, `.to(torch.float64)` and `dtype=torch.float64` of tensors on the accelerator in served code, and
        NumPy results, which are float64 by default, moved to the device without a type.
        """
    why = """
        Consumer and inference GPUs compute float64 at a 32nd to a 64th of their float32 rate, data-centre ones at half;
        all of them read and write twice the bytes, and whatever meets a float64 tensor with dimensions is promoted to
        it. MPS has no float64 at all.
        """
    fine = """
        - Rotary tables and schedules computed in float64 for accuracy and rounded once: shown only where they are
          recomputed for every step, token or layer.
        - Host tensors, metrics, tests, set-up.
        - `torch.from_numpy(x).to(device, torch.float32)`, `.astype(np.float32)`.
        - Shown at low confidence only: readers of real findings turned all of them down, right and not worth a
          change as most were.
        """
    safety = """
        Unsafe: float32 in the place of float64 rounds earlier. The rewrite changes the named type; for NumPy data it is
        a recommendation.
        """
    tolerance = 64
    references = (
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#arithmetic-instructions",
        "https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc",
    )
    bad = """
        import torch
        from torch import nn

        class Timesteps(nn.Module):
            def forward(self, timesteps: torch.Tensor, num_inference_steps: int, unet: nn.Module) -> torch.Tensor:
                latents = torch.zeros(1, 4, 64, 64, device="cuda")
                for t in range(num_inference_steps):
                    sigma = latents.double().std()
                    latents = unet(latents / sigma, t)
                return latents
        """
    good = """
        import torch
        from torch import nn

        class Timesteps(nn.Module):
            def forward(self, timesteps: torch.Tensor, num_inference_steps: int, unet: nn.Module) -> torch.Tensor:
                latents = torch.zeros(1, 4, 64, 64, device="cuda")
                for t in range(num_inference_steps):
                    sigma = latents.float().std()
                    latents = unet(latents / sigma, t)
                return latents
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        found = _wide(node, view)
        if found is None:
            return
        value = view.value(node)
        frequency = served_frequency(view, node)
        if frequency is None or value.device is Device.HOST or value.rank == 0:
            return
        level = sureness(view, node, frequency, value)
        if found.dtype is not None and (not frequency.hot or reason_given(file.text, node.lineno)):
            level = lower(level, Confidence.LOW)  # somebody asked for it, and it is rare or explained
        action = "use float32" if found.dtype is not None else "cast on the host first: `.astype(np.float32)`"
        yield Candidate(
            node=node,
            message=f"`{short(node)}` {found.what} {often(frequency)}".rstrip(),
            action=action,
            confidence=lower(self.confidence, level),
            frequency=frequency,
            why=frequency_reason(frequency),
            data=found,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        found, node = candidate.data, candidate.node
        if not isinstance(found, _Wide) or not isinstance(node, ast.Call) or found.dtype is None:
            return None
        definition.node(node)
        if found.dtype is node:
            assert isinstance(node.func, ast.Attribute)
            edit = definition.replace(node, f"{definition.text(node.func.value)}.float()")
        else:
            edit = definition.replace(found.dtype, definition.torch_name("torch.float32"))
        return Fix(title="use float32", safety=Safety.UNSAFE, edits=(edit,), effects=(Effect.NUMERICS,))


def _wide(call: ast.Call, view: FunctionView) -> _Wide | None:
    name = callee(call)
    if name == "double" and isinstance(call.func, ast.Attribute) and not call.args:
        value = view.value(call.func.value)
        return _Wide("computes in float64", call) if _on_device(value) else None
    if name in ("to", "type") and isinstance(call.func, ast.Attribute):
        dtype = argument(call, None, "dtype") or next((a for a in call.args if view.qualified(a) in _WIDE), None)
        if dtype is not None and view.qualified(dtype) in _WIDE and _on_device(view.value(call)):
            return _Wide("computes in float64", dtype)
    dtype = argument(call, None, "dtype")
    if dtype is not None and view.qualified(dtype) in _WIDE:
        dotted = view.qualified(call.func) or ""
        free = dotted.startswith("torch.") and not dotted.startswith("torch.Tensor.")
        if free and _on_device(view.value(call)):
            return _Wide("makes a float64 tensor on the device", dtype)
    if name in ("to", "cuda", "tensor", "as_tensor"):
        return _from_numpy(call, view)
    return None


def _on_device(value: Value) -> bool:
    return value.is_tensor and value.on_device


def _from_numpy(call: ast.Call, view: FunctionView) -> _Wide | None:
    """NumPy's float64 moved to the device as it is."""
    if argument(call, None, "dtype") is not None or not view.value(call).on_device:
        return None
    source: ast.expr | None = None
    if callee(call) in ("to", "cuda") and isinstance(call.func, ast.Attribute):
        made = resolve(call.func.value, view)
        if any(view.value(a).kind in (Kind.DTYPE, Kind.TENSOR) for a in call.args[:2]) or len(call.args) > 1:
            return None
        packed = isinstance(made, ast.Call) and view.qualified(made.func) in ("torch.from_numpy", "torch.as_tensor")
        if packed and isinstance(made, ast.Call) and argument(made, None, "dtype") is None and made.args:
            source = made.args[0]
    elif (view.qualified(call.func) or "") in ("torch.tensor", "torch.as_tensor") and call.args:
        source = call.args[0]
    if source is None:
        return None
    origin = resolve(source, view)
    if not isinstance(origin, ast.Call) or any(k.arg == "dtype" for k in origin.keywords):
        return None
    dotted = view.qualified(origin.func) or ""
    module, _, name = dotted.rpartition(".")
    if (module == "numpy" and name in _NUMPY and not _narrow(origin, view)) or (
        module == "numpy.random" and name in _NUMPY_RANDOM
    ):
        return _Wide(f"is float64 on the device, since `np.{name}` gives float64")
    return None


def _narrow(call: ast.Call, view: FunctionView) -> bool:
    """Whether a NumPy function keeps the type of an array that may be float32."""
    return callee(call) in ("sin", "cos", "exp", "log", "sqrt", "mean", "std") and not any(
        view.value(a).kind is Kind.SCALAR for a in call.args
    )
