"""AWP303 manual-activation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.values import Device, DTypeClass
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import frequency_reason, judge, names_in, often, reasons, runs_often, short
from awp_lint.rules.edits import drops, intermediates, mutated_between
from awp_lint.rules.fusion.activations import Activation, activation
from awp_lint.rules.fusion.context import called, compiled_class, declined, place
from awp_lint.rules.nodemap import Definition

_CALLS = frozenset({"exp", "log", "log1p", "where", "mul", "div", "multiply", "divide", "true_divide"})


class ManualActivation(Rule):
    """GELU, SiLU, softmax and the like written out in elementwise operations."""

    id = "AWP303"
    name = "manual-activation"
    root_cause = RootCause.COMPUTE
    cost_us = 15.0
    event = Event.LAUNCHES
    words = (b"tanh", b"erf", b"sigmoid", b"exp(", b"log(", b"log1p", b"logsumexp", b"softplus", b"relu6", b"where(")
    nodes = (ast.BinOp, ast.Call)
    calls = frozenset(_CALLS)
    over = ("AWP301",)

    summary = "an activation is written out where one fused call computes it"
    what = """
        GELU (exact or tanh), SiLU, sigmoid, Mish, hardswish, GLU, softmax, log-softmax, log-sum-exp, softplus,
        log-sigmoid and leaky ReLU spelt out in elementwise operations, in one expression or over several statements.
        """
    why = """
        Every elementwise operation is a kernel of its own that reads and writes the whole tensor: the tanh form of GELU
        takes eight of them. The built-in function reads and writes once, and is the numerically stable form for the
        exponentials.
        """
    fine = """
        - `x * sigmoid(1.702 * x)` and other variants that no built-in function computes.
        - Functions whose comments speak of the built-in function: they have a reason; low confidence.
        - A class that goes by the name of one of PyTorch's own modules (`Swish`, `Mish`) and that nothing shown runs:
          it is there for old versions, or for those who ask for it by name. Shown at low confidence.
        - Host tensors, NumPy arrays, set-up code, tests and training.
        - Compiled regions, where the compiler fuses the chain, and an engine's classes that it compiles as a whole.
        """
    safety = """
        Unsafe: the fused function rounds differently in the last bits, and its intermediate results never leave the
        registers. In half precision it is the more exact one.
        """
    tolerance = 8
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.gelu.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.silu.html",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#fuse-operations",
    )
    bad = """
        import math
        import torch

        class MLP(torch.nn.Module):
            def __init__(self, dim: int) -> None:
                super().__init__()
                self.up = torch.nn.Linear(dim, 4 * dim)
                self.down = torch.nn.Linear(4 * dim, dim)

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                x = self.up(hidden_states)
                x = 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
                return self.down(x)
        """
    good = """
        import torch
        import torch.nn.functional as F

        class MLP(torch.nn.Module):
            def __init__(self, dim: int) -> None:
                super().__init__()
                self.up = torch.nn.Linear(dim, 4 * dim)
                self.down = torch.nn.Linear(4 * dim, dim)

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                return self.down(F.gelu(self.up(hidden_states), approximate="tanh"))
        """

    def convinced(self, view: FunctionView, file: FileView) -> bool:
        return runs_often(view) or not view.frequency(view.node).chain  # once, before or after all layers

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if isinstance(node, ast.BinOp):
            if not isinstance(node.op, ast.Mult | ast.Div | ast.Sub):
                return
        elif not (isinstance(node, ast.Call) and _callee(node) in _CALLS):
            return
        if not _NONLINEAR & called(view):
            return
        found = activation(node, view)
        if found is None:
            return
        value = view.value(found.x)
        result = view.value(node)
        if not value.is_tensor and result.is_tensor:
            value = result
        if value.device is Device.HOST or value.dtype in (DTypeClass.INT, DTypeClass.BOOL) or value.rank == 0:
            return
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _in_exp(node, view):
            return  # the whole is a softmax
        counted = place(view, node)
        if counted is None or compiled_class(view, file):
            return
        frequency, cap = counted
        call = _spelling(found)
        if declined(view, file, found.function):
            cap = Confidence.LOW
        yield Candidate(
            node=node,
            message=f"`{short(node)}` is {found.name} in several kernels {often(frequency)}".rstrip(),
            action=f"call `{call}`",
            confidence=judge(frequency, value, cap=cap),
            frequency=frequency,
            why=(*reasons(value, found.x), *frequency_reason(frequency)),
            covers=tuple(part for part in ast.walk(node) if isinstance(part, ast.expr) and part is not node),
            data=found,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        found = candidate.data
        node = candidate.node
        if not isinstance(found, Activation) or not isinstance(node, ast.expr):
            return None
        view = definition.view
        used = names_in(found.x)
        if not _uncast_throughout(node):
            return None
        spare = intermediates(node, used, view)
        if any(mutated_between(statement, view.statement(node), used, view) for statement in spare):
            return None
        edits = drops(spare, definition)
        if edits is None:
            return None
        definition.node(node)
        name = definition.torch_name(found.function)
        new = f"{name}({', '.join((definition.text(found.x), *found.options))})"
        return Fix(
            title=f"call `{short(ast.parse(new, mode='eval').body, 50)}`",
            safety=Safety.UNSAFE,
            edits=(*edits, definition.replace(node, new)),
            effects=(Effect.NUMERICS,),
        )


_NONLINEAR = frozenset({"tanh", "erf", "sigmoid", "exp", "relu6", "clamp", "softplus", "log", "logsumexp", "where"})


def _in_exp(node: ast.expr, view: FunctionView) -> bool:
    parent = view.parent(node)
    if isinstance(parent, ast.Attribute):
        parent = view.parent(parent)
    return isinstance(parent, ast.Call) and _callee(parent) == "exp"


def _callee(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _spelling(found: Activation) -> str:
    module, _, name = found.function.rpartition(".")
    prefix = "F" if module.endswith("functional") else "torch"
    return f"{prefix}.{name}({', '.join((short(found.x, 40), *found.options))})"


def _uncast_throughout(node: ast.expr) -> bool:
    """Whether no part of the pattern changes the type on the way, which the fused call would not do."""
    return not any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in ("float", "to", "half", "bfloat16", "double", "type", "type_as")
        for part in ast.walk(node)
    )
