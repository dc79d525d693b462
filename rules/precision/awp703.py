"""AWP703 fp32-matmul."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.values import Device
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import argument, callee, frequency_reason, lower, often, short, sureness
from awp_lint.rules.fusion.context import place
from awp_lint.rules.precision.modes import float32_on_purpose

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_SWITCHES = frozenset({
    "torch.backends.cuda.matmul.allow_tf32", "torch.backends.cudnn.allow_tf32",
})  # fmt: skip
_PRODUCTS = frozenset({"matmul", "mm", "bmm", "einsum", "linear", "baddbmm", "addmm"})
#: Names of what is computed in float32 on purpose: small products that decide something.
_ON_PURPOSE = ("router", "gate", "freq", "inv_freq", "rope", "rotary", "logit", "score", "position")


class Fp32Matmul(Rule):
    """Matrix products in float32 where TensorFloat-32 or bfloat16 would do."""

    id = "AWP703"
    name = "fp32-matmul"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.MEDIUM
    cost_us = 100.0
    event = Event.LAUNCHES
    anywhere = True
    words = (b"allow_tf32", b"set_float32_matmul_precision", b".float()", b"torch.float32")
    nodes = (ast.Assign, ast.Call, ast.BinOp)
    calls = _PRODUCTS | {"set_float32_matmul_precision"}

    summary = "matrix products run in full float32"
    what = """
        TensorFloat-32 switched off (`allow_tf32 = False`, `set_float32_matmul_precision("highest")`) in code that
        serves, and matrix products of which both operands are cast to float32 on a hot path.
        """
    why = """
        A float32 product uses the plain arithmetic units: an eighth or less of the tensor cores' TensorFloat-32 rate
        and a sixteenth of their bfloat16 rate on data-centre GPUs, and twice the bytes of bfloat16.
        """
    fine = """
        - Small products that decide something (routers, rotary tables, logits) and are kept in float32 on purpose: low
          confidence, by their names. So are classes and functions that say so (`Float32Linear`), and what stands below
          a disabled autocast.
        - Comparisons with a reference, tests, training, solvers.
        - Models in half precision, which the switches do not touch.
        """
    safety = """
        Unsafe, never by `--fix` alone: dropping digits is a decision about the model's quality. Switches that forbid
        TensorFloat-32 are turned round; products cast to float32 get a recommendation. Compare the results.
        """
    manual = True
    tolerance = 16384
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#tf32-on-ampere",
    )
    bad = """
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        model = torch.nn.Linear(512, 512).to("cuda").eval()

        @torch.inference_mode()
        def predict(x: torch.Tensor) -> torch.Tensor:
            return model(x.to("cuda"))
        """
    good = """
        import torch

        torch.set_float32_matmul_precision("high")
        model = torch.nn.Linear(512, 512).to("cuda").eval()

        @torch.inference_mode()
        def predict(x: torch.Tensor) -> torch.Tensor:
            return model(x.to("cuda"))
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if isinstance(node, ast.Assign):
            yield from self._switch(node, node.targets[0], node.value, view)
        elif isinstance(node, ast.Call) and callee(node) == "set_float32_matmul_precision":
            level = argument(node, 0, "precision")
            if view.qualified(node.func) == "torch.set_float32_matmul_precision" and level is not None:
                yield from self._switch(node, node.func, level, view)
        elif isinstance(node, ast.Call | ast.BinOp):
            yield from self._product(node, view)

    def _switch(
        self, node: ast.Assign | ast.Call, target: ast.expr, value: ast.expr, view: FunctionView
    ) -> Iterator[Candidate]:
        if not isinstance(value, ast.Constant) or value.value not in (False, "highest"):
            return
        if isinstance(node, ast.Assign) and view.qualified(target) not in _SWITCHES:
            return
        if view.regions(node) & (Region.TEST | Region.TRAINING | Region.TIMED | Region.DEBUG):
            return
        name = view.qualname.lower()
        deliberate = any(word in name for word in ("determin", "reproduc", "seed", "exact", "reference"))
        frequency = view.frequency(node)
        yield Candidate(
            node=node,
            message=f"`{short(node)}` keeps float32 products off the tensor cores",
            action='allow TensorFloat-32 (`torch.set_float32_matmul_precision("high")`) or run the model in bfloat16',
            confidence=Confidence.LOW if deliberate else self.confidence,
            frequency=frequency,
            why=frequency_reason(frequency)[:1],
            data=value,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        value = candidate.data
        if not isinstance(value, ast.Constant):
            return None
        return Fix(
            title="allow TensorFloat-32",
            safety=Safety.UNSAFE,
            edits=(definition.replace(value, "True" if value.value is False else '"high"'),),
            effects=(Effect.NUMERICS,),
            requires=("ten bits of mantissa are enough in products",),
        )

    def _product(self, node: ast.Call | ast.BinOp, view: FunctionView) -> Iterator[Candidate]:
        operands = _operands(node)
        if len(operands) < 2 or not all(_cast(part, view) for part in operands):
            return
        values = [view.value(part) for part in operands]
        if any(value.device is Device.HOST for value in values):
            return
        counted = place(view, node)
        if counted is None:
            return
        frequency, cap = counted
        text = ast.unparse(node).lower() + view.qualname.lower()
        deliberate = any(word in text for word in _ON_PURPOSE) or float32_on_purpose(view, node)
        if not frequency.hot or deliberate:
            cap = lower(cap, Confidence.LOW)
        yield Candidate(
            node=node,
            message=f"`{short(node)}` multiplies in float32 {often(frequency)}".rstrip(),
            action="multiply in the model's type and cast the result, or allow TensorFloat-32",
            confidence=lower(self.confidence, cap, sureness(view, node, frequency, *values)),
            frequency=frequency,
            why=frequency_reason(frequency),
        )


def _operands(node: ast.Call | ast.BinOp) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right] if isinstance(node.op, ast.MatMult) else []
    name = callee(node)
    if name not in _PRODUCTS:
        return []
    if name == "einsum":
        return node.args[1:]
    if name in ("baddbmm", "addmm"):
        return node.args[1:3]
    if isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        return [node.func.value, node.args[0]]
    return node.args[:2]


def _cast(node: ast.expr, view: FunctionView) -> bool:
    """Whether an operand is cast to float32 in the product itself, transposes seen through."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        if name == "float":
            return not node.args
        if name == "to":
            dtype = argument(node, None, "dtype") or (node.args[0] if node.args else None)
            return dtype is not None and view.qualified(dtype) == "torch.float32"
        if name not in ("transpose", "t", "permute", "unsqueeze", "expand", "contiguous"):
            return False
        node = node.func.value
    return False
