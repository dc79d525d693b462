"""AWP301 pointwise-chain."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Event, Fix, MarkKind, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView, Level
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import frequency_reason, has_loops, judge, lower, often, reasons, short
from awp_lint.rules.fusion.activations import activation
from awp_lint.rules.fusion.chains import Chain, chains, long_enough
from awp_lint.rules.fusion.context import compiled_class, place, replaced_class
from awp_lint.rules.fusion.norms import norm
from awp_lint.rules.fusion.residual import residual_norms

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_BOOKKEEPING = re.compile(r"len(gth)?s?(_|$)|padding|position|bucket|index|indices|_mask|shape|offset|metadata")
_LEAST = 7  # launches: fewer save less than a compiled region costs to enter


class PointwiseChain(Rule):
    """A long chain of elementwise operations in hot code that nothing compiles."""

    id = "AWP301"
    name = "pointwise-chain"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.MEDIUM
    cost_us = 30.0
    event = Event.LAUNCHES
    mark = MarkKind.STATEMENT
    words = (b"torch",)
    nodes = (ast.FunctionDef,)
    repeated = True

    summary = "many elementwise kernels run one after the other in hot code"
    what = """
        Seven or more elementwise operations on device tensors in neighbouring statements that hand their results to
        each other, outside compiled and captured regions, in code that runs for every step, token or layer. And a
        residual added by itself right before an RMSNorm of a serving engine (vLLM, SGLang), whose kernel takes the
        residual as a second argument.
        """
    why = """
        Each operation reads its operands from memory and writes its result back, and is launched by itself; fused, the
        chain reads its inputs once, writes its output once and is one launch.
        """
    fine = """
        - Shorter chains; operations on 0-d tensors, host tensors and Python numbers.
        - Compiled regions, `torch.jit.script`, CUDA graphs (there the launches cost little), reference
          implementations, an engine's classes that it compiles as a whole (`@support_torch_compile`) and their parts.
        - Once a request and set-up.
        - The way that only likelihoods take through an invertible layer (`if not reverse:`), and the update of an
          adapter, which is merged before it serves; a class that one word of a choice makes, which the package says
          nowhere: low confidence.
        - Schedulers of diffusion pipelines, whose coefficients are 0-d host tensors, and arithmetic on lengths and
          positions: shown at low confidence.
        """
    safety = """
        Unsafe (numerics) where the function does nothing else: it is decorated with `@torch.compile(dynamic=True)`,
        which compiles at the first call and for every new type. Otherwise a recommendation: put the chain into a
        function of its own and decorate that, or use a fused call where there is one (AWP302, AWP303).
        """
    tolerance = 16
    references = (
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#fuse-operations",
        "https://docs.pytorch.org/tutorials/intermediate/torch_compile_tutorial.html",
    )
    bad = """
        import torch
        from torch import nn

        class Mixer(nn.Module):
            def forward(self, x: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
                decay = torch.exp(-torch.exp(scale))
                mixed = x * decay + shift * (1.0 - decay)
                gate = torch.sigmoid(mixed * 0.5 + x)
                return gate * mixed + (1.0 - gate) * x

        class Model(nn.Module):
            def __init__(self, depth: int) -> None:
                super().__init__()
                self.layers = nn.ModuleList([Mixer() for _ in range(depth)])

            def forward(self, x: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    x = layer(x, shift, scale)
                return x
        """
    good = """
        import torch
        from torch import nn

        @torch.compile
        def mix(x: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
            decay = torch.exp(-torch.exp(scale))
            mixed = x * decay + shift * (1.0 - decay)
            gate = torch.sigmoid(mixed * 0.5 + x)
            return gate * mixed + (1.0 - gate) * x

        class Mixer(nn.Module):
            def forward(self, x: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
                return mix(x, shift, scale)

        class Model(nn.Module):
            def __init__(self, depth: int) -> None:
                super().__init__()
                self.layers = nn.ModuleList([Mixer() for _ in range(depth)])

            def forward(self, x: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    x = layer(x, shift, scale)
                return x
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.FunctionDef)
        if node is not view.node:
            return
        if compiled_class(view, file):
            return
        yield from _residuals(view)
        if not (_may_be_often(view) and long_enough(node.body, view, _LEAST)):
            return
        longest: Chain | None = None
        for chain in chains(node.body, view):
            _take_out_fused(chain, view)
            if len(chain.operations) >= max(_LEAST, len(longest.operations) + 1 if longest is not None else 0):
                longest = chain
        if longest is None:
            return
        first = _result(longest, view)
        counted = place(view, first)
        if counted is None:
            return
        frequency, cap = counted
        if frequency.known and _OFTEN.isdisjoint(frequency.path):
            return
        if any(base.endswith("SchedulerMixin") for base in view.class_bases):
            cap = Confidence.LOW  # once a step, and mostly on 0-d host tensors that nothing tells from others
        if _of_weights(view):
            cap = Confidence.LOW
        if replaced_class(view, file) or _BOOKKEEPING.search(view.qualname.rpartition(".")[2]):
            cap = Confidence.LOW
        value = view.value(first)
        home = [view.statement(part) for part in longest.operations]
        line, last = min(s.lineno for s in home), max(s.end_lineno or s.lineno for s in home)
        kernels = f"{len(longest.operations)} elementwise kernels"
        lines = f"lines {line} to {last} launch {kernels}" if line != last else f"{kernels} are launched"
        whole = 2 * len({id(s) for s in home}) >= len(node.body)
        yield Candidate(
            node=first,
            message=f"{lines} in a row {often(frequency)}".rstrip(),
            action=f"compile them up to `{short(first, 30)}` as a function of their own (`@torch.compile`)",
            confidence=lower(self.confidence, judge(frequency, value, cap=cap)),
            frequency=frequency,
            why=(*reasons(value, first), *frequency_reason(frequency)),
            mark=MarkKind.FUNCTION if whole else None,
            data=True,
            covers=tuple(longest.operations),
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.fusion.compiling import compiled

        return compiled(definition) if candidate.data is True else None


def _of_weights(view: FunctionView) -> bool:
    """Whether a function works on weights alone, its object's or those that it is given: small beside their input."""
    if not isinstance(view.node, ast.FunctionDef):
        return False
    arguments = view.node.args
    given = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    names = [name for name in given if name not in ("self", "cls")]
    tensors = [name for name in names if not name.startswith(("max_", "min_", "eps"))]
    if not names:
        return given[:1] == ["self"]
    return bool(tensors) and all(name.endswith(("weight", "weights")) for name in tensors)


_OFTEN = frozenset({Level.TOKEN, Level.STEP, Level.LAYER})


def _may_be_often(view: FunctionView) -> bool:
    """Whether something in the definition may run at every step, token or layer, or how often is not known."""
    frequency = view.frequency(view.node)
    return not frequency.known or not _OFTEN.isdisjoint(frequency.path) or has_loops(view)


def _residuals(view: FunctionView) -> Iterator[Candidate]:
    """Residuals that are added right before an engine's norm, which would add them in its own kernel."""
    for found in residual_norms(view):
        counted = place(view, found.added)
        if counted is None:
            continue
        frequency, cap = counted
        norm_name = short(found.norm.func, 40)
        yield Candidate(
            node=found.added,
            message=f"`{short(found.added, 40)}` is a kernel of its own {often(frequency)}, right before `{norm_name}`",
            action=f"hand the residual on: `{norm_name}({short(found.norm.args[0])}, {found.residual})` adds it itself",
            confidence=lower(Confidence.MEDIUM, judge(frequency, view.value(found.norm.args[0]), cap=cap)),
            frequency=frequency,
            why=(*reasons(view.value(found.added), found.added), *frequency_reason(frequency)),
        )


def _take_out_fused(chain: Chain, view: FunctionView) -> None:
    """Drop the operations that one fused call would do: other rules speak of them."""
    gone: set[int] = set()
    for part in chain.operations:
        if id(part) not in gone and (norm(part, view) is not None or activation(part, view) is not None):
            gone |= {id(inner) for inner in ast.walk(part)}
    chain.operations = [part for part in chain.operations if id(part) not in gone]


def _result(chain: Chain, view: FunctionView) -> ast.expr:
    """What the last statement with an operation computes."""
    statement = view.statement(chain.operations[-1])
    value = getattr(statement, "value", None)
    return value if isinstance(value, ast.expr) else chain.operations[-1]
