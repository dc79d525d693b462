"""AWP306 invariant-recompute."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.definition import descendants
from awp_lint.detector.semantics.library import lookup
from awp_lint.detector.semantics.values import Device, Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, Level, LoopKind
from awp_lint.rules.alike import alike_in_layers
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    ancestors,
    assigned_name,
    callee,
    frequency_reason,
    has_loops,
    hot_frequency,
    lower,
    names_in,
    often,
    served_frequency,
    short,
    sureness,
)
from awp_lint.rules.doubts import kept
from awp_lint.rules.fusion.context import compiled_class, fused_elsewhere, traced_branch, without_library
from awp_lint.rules.fusion.walks import Walk, may_walk, module_walk

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_LOOPS = (LoopKind.LAYERS, LoopKind.STEPS, LoopKind.TOKENS, LoopKind.EXPERTS, LoopKind.BATCH, LoopKind.ELEMENTS)
_ROTARY = re.compile(r"(^|_)(rotary(_pos(ition)?)?(_emb(edding)?s?)?|rope|rotary_fn|pos_emb(edding)?)$")
_POSITIONS = re.compile(r"^(position_ids?|positions|pos_ids|cache_position)$")
_ATTENTION = re.compile(r"(attn|attention|layer|block)s?\d*$", re.IGNORECASE)
_FACTORIES = frozenset({
    "arange", "linspace", "zeros", "ones", "full", "eye", "tril_indices", "triu_indices", "range", "logspace",
    "hann_window", "hamming_window",
})  # fmt: skip
_TABLES = _FACTORIES | {"tril", "triu", "cos", "sin", "outer"}
#: Casts and moves: nothing happens where type and device are right already.
_FREE = frozenset(
    {"to", "float", "half", "bfloat16", "long", "int", "bool", "cuda", "cpu", "contiguous", "type", "type_as"}
)
_SIZES = frozenset({"size", "shape", "device", "dtype", "ndim", "numel", "dim", "is_cuda"})


@dataclass(frozen=True, slots=True)
class _Work:
    """How many launches an expression makes, and what they come from."""

    launches: int
    factory: bool


class InvariantRecompute(Rule):
    """Device work repeated in every pass although its inputs never change."""

    id = "AWP306"
    name = "invariant-recompute"
    root_cause = RootCause.COMPUTE
    cost_us = 15.0
    event = Event.LAUNCHES
    words = (
        b"for ",
        b"while ",
        b"rotary",
        b"rope",
        b"arange",
        b"linspace",
        b"ones(",
        b"zeros(",
        b"full(",
        b"modules()",
        b"cos(",
    )
    nodes = (ast.Call, ast.BinOp, ast.Compare)
    doubted = True

    summary = "device work is repeated in every pass although its inputs never change"
    what = """
        In a loop over layers, steps, tokens or rows: tensor operations whose operands the loop never writes (masks,
        tables, scaled copies, broadcast constants). In an attention layer: rotary tables computed from position ids
        that are the same for all layers, or from angles that the calls pass to all of them alike, and tables made of
        sizes and constants alone. In served code: walks through
        all modules of a model (`modules()`) that only count or collect them.
        """
    why = """
        The result is the same in every pass, so all but the first computation are launches, memory traffic and host
        time for nothing: layers × steps times. A walk through a model's modules takes a microsecond or more a module,
        milliseconds for a large model.
        """
    fine = """
        - Anything that depends on the loop variable or on what the loop writes, random numbers, uninitialised memory.
        - Tensors that the pass changes in place: they must start fresh.
        - Reshapes and casts, which cost nothing where there is nothing to do.
        - Rotary modules that rotate the queries and keys they are given, or that look up a table by length.
        - Compiled regions, an engine's classes that it compiles as a whole (`@support_torch_compile`), branches for
          compilers, and code that runs only where an optional library is missing.
        - Walks that stop at the first module they look for.
        """
    safety = """
        Unsafe: what a loop of the same function computes anew moves before the loop; it is then one tensor for all
        passes, which nobody may write into. Across functions a recommendation: compute it in the model's `forward` or
        in a buffer, and pass it down.
        """
    manual = True
    references = (
        "huggingface/transformers#34858 rotary tables handed down to the layers",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    )
    bad = """
        import torch
        from torch import nn

        class Decoder(nn.Module):
            def __init__(self, layers: nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    bias = (1.0 - attention_mask[:, None, None, :]) * -10000.0
                    hidden_states = layer(hidden_states, bias)
                return hidden_states
        """
    good = """
        import torch
        from torch import nn

        class Decoder(nn.Module):
            def __init__(self, layers: nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
                bias = (1.0 - attention_mask[:, None, None, :]) * -10000.0
                for layer in self.layers:
                    hidden_states = layer(hidden_states, bias)
                return hidden_states
        """

    def concerns(self, view: FunctionView, file: FileView) -> bool:
        if has_loops(view) or _of_layers(view):
            return True
        return any(
            _is_rotary(callee(call)) or callee(call) == "cos" or may_walk(call, view, file)  # type: ignore[arg-type]
            for call in view.nodes(ast.Call)
        )

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.expr)
        name = callee(node) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call):
            if _is_rotary(name):
                yield from self._rotary(node, view)
                return
            walk = module_walk(node, view, file)
            if walk is not None:
                yield from _walked(walk, view)
                return
            if name == "cos" and not view.loops(node):
                yield from _turned(node, view, file)
        if compiled_class(view, file):
            return
        loops = view.loops(node)
        if loops:
            yield from self._in_loop(node, loops[0], view, file)
        elif (isinstance(node, ast.BinOp) or name in _TABLES) and _of_layers(view):
            yield from self._per_layer(node, view, file)

    def _in_loop(self, node: ast.expr, loop: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if view.loop_kind(loop) not in _LOOPS or isinstance(loop, ast.comprehension):
            return
        written = view.written_in(loop)
        if not _invariant(node, written) or _invariant_parent(node, written, view, file):
            return
        work = _work(node, view, file)
        if work is None or not work.launches:
            return
        value = view.value(node)
        if value.device is Device.HOST or (value.kind is not Kind.TENSOR):
            return
        frequency = hot_frequency(view, node)
        if frequency is None or fused_elsewhere(view, node) or _guarded(node, loop, written, view):
            return
        name = assigned_name(view, node)
        if kept(node, view) or (name is not None and _changed_in_place(name, loop, view, node)):
            return
        yield Candidate(
            node=node,
            message=f"`{short(node)}` is computed anew {often(frequency)}, always from the same values".replace(
                " ,", ","
            ),
            action="compute it once before the loop",
            confidence=sureness(view, node, frequency, value),
            frequency=frequency,
            why=(f"the loop writes none of {_inputs(node)}", *frequency_reason(frequency)),
            data=loop,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.hoist import hoist

        if not isinstance(candidate.data, ast.AST):
            return None
        assert isinstance(candidate.node, ast.expr)
        edits = hoist(candidate.node, candidate.data, definition)
        if edits is None:
            return None
        return Fix(
            title="compute it once before the loop",
            safety=Safety.UNSAFE,
            edits=edits,
            effects=(Effect.ALIASING, Effect.TIMING),
            requires=(
                "nothing that the loop calls writes into it",
                "the loop runs at least once, or the work is in vain",
            ),
        )

    def _rotary(self, node: ast.Call, view: FunctionView) -> Iterator[Candidate]:
        """``cos, sin = self.rotary_emb(x, position_ids)`` in an attention layer."""
        parent = view.parent(node)
        if not (isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple)):
            return
        names = [getattr(t, "id", "") for t in parent.targets[0].elts]
        if len(names) != 2 or not ("cos" in names[0] and "sin" in names[1]):
            return
        inputs = [a for a in (*node.args, *(k.value for k in node.keywords)) if isinstance(a, ast.Name)]
        positions = [a.id for a in inputs if _POSITIONS.search(a.id)]
        if not positions or view.class_name is None or not _ATTENTION.search(view.class_name):
            return
        if any(view.assignments(name) for name in positions) or view.loops(node):
            return
        frequency = hot_frequency(view, node)
        if frequency is None:
            return
        per_layer = Level.LAYER in frequency.path
        yield Candidate(
            node=node,
            message=f"`{short(node)}` computes the same cosines and sines in every layer, from `{positions[0]}` alone",
            action="compute them once in the model's `forward` and pass them to the layers",
            confidence=lower(Confidence.MEDIUM if per_layer else Confidence.LOW, sureness(view, node, frequency)),
            frequency=frequency,
            why=frequency_reason(frequency),
        )

    def _per_layer(self, node: ast.expr, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        """Tables of sizes and constants in a function that every layer calls."""
        if not any(isinstance(part, ast.Call) and callee(part) in _FACTORIES for part in ast.walk(node)):
            return
        if Level.LAYER not in view.frequency(node).path or _sized_parent(node, view, file):
            return
        work = _work(node, view, file)
        if work is None or not work.factory or work.launches < 2 or not _from_sizes(node, view):
            return
        frequency = hot_frequency(view, node)
        if frequency is None or Level.LAYER not in frequency.path or fused_elsewhere(view, node):
            return
        if traced_branch(view, node) or without_library(view, node):
            return
        value = view.value(node)
        name = assigned_name(view, node)
        if value.device is Device.HOST or (name is not None and _written(name, view)):
            return
        yield Candidate(
            node=node,
            message=f"`{short(node)}` is made anew {often(frequency)} from sizes and constants",
            action="make it once in the model's `forward` or keep it in a buffer, and pass it to the layers",
            confidence=lower(Confidence.MEDIUM, sureness(view, node, frequency, value)),
            frequency=frequency,
            why=frequency_reason(frequency),
        )


@functools.lru_cache(maxsize=4096)
def _is_rotary(name: str) -> bool:
    return _ROTARY.search(name) is not None


def _of_layers(view: FunctionView) -> bool:
    """Whether the definition is a method that every layer calls."""
    known = view.memo.setdefault(_of_layers, {})
    if not known:
        known[None] = view.class_name is not None and Level.LAYER in view.frequency(view.node).path
    return bool(known[None])


def _walked(walk: Walk, view: FunctionView) -> Iterator[Candidate]:
    """A walk that every request repeats."""
    frequency = served_frequency(view, walk.call)
    if frequency is None or not frequency.known:
        return
    name = short(walk.module, 40)
    yield Candidate(
        node=walk.call,
        message=f"`{short(walk.call, 40)}` walks through all modules of `{name}` {often(frequency)}",
        action="do it once where the model is built and keep the result",
        confidence=lower(Confidence.MEDIUM, sureness(view, walk.call, frequency)),
        frequency=frequency,
        why=frequency_reason(frequency),
    )


def _turned(node: ast.Call, view: FunctionView, file: FileView) -> Iterator[Candidate]:
    """``angles.cos()`` of a parameter that all layers are given alike."""
    angles = node.args[0] if view.qualified(node.func) == "torch.cos" and len(node.args) == 1 else None
    if angles is None and isinstance(node.func, ast.Attribute) and not node.args:
        angles = node.func.value
    if not isinstance(angles, ast.Name) or not view.value(angles).is_tensor:
        return
    frequency = hot_frequency(view, node)
    if frequency is None or Level.LAYER not in frequency.path or fused_elsewhere(view, node):
        return
    if not alike_in_layers((angles.id,), view, file):
        return
    yield Candidate(
        node=node,
        message=f"the cosines of `{angles.id}` are computed {often(frequency)}, and all layers are given the same ones",
        action="compute them once above the layers and pass them down",
        confidence=lower(Confidence.MEDIUM, sureness(view, node, frequency, view.value(angles))),
        frequency=frequency,
        why=("the calls pass it on unchanged from above the layers", *frequency_reason(frequency)),
    )


def _inputs(node: ast.expr) -> str:
    names = sorted(names_in(node) - {"torch", "F", "nn", "math", "self"})[:3]
    attributes = sorted({ast.unparse(n) for n in ast.walk(node) if isinstance(n, ast.Attribute) and _own(n)})[:2]
    return ", ".join(f"`{name}`" for name in (*names, *attributes)) or "its constants"


def _own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _invariant(node: ast.AST, written: frozenset[str]) -> bool:
    """Whether a pass of the loop writes nothing that the expression reads."""
    for part in descendants(node):
        if isinstance(part, ast.Name) and part.id in written:
            return False
        if isinstance(part, ast.Attribute) and _own(part) and f"self.{part.attr}" in written:
            return False
        if isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda | ast.Starred):
            return False
        if isinstance(part, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
            return False
    return True


def _invariant_parent(node: ast.expr, written: frozenset[str], view: FunctionView, file: FileView) -> bool:
    """Whether a larger invariant expression of the same statement holds the node: that one is reported."""
    for parent in ancestors(view, node):
        if isinstance(parent, ast.stmt):
            return False
        if isinstance(parent, ast.Call | ast.BinOp | ast.Compare) and _invariant(parent, written):
            work = _work(parent, view, file)
            if work is not None and work.launches:
                return True
    return False


def _work(node: ast.expr, view: FunctionView, file: FileView) -> _Work | None:
    """The device work of an expression; None where something in it is not known to be a pure tensor operation."""
    launches = 0
    factory = False
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            name = callee(part)
            dotted = view.qualified(part.func)
            if dotted is None and isinstance(part.func, ast.Attribute) and view.value(part.func.value).is_tensor:
                dotted = f"torch.Tensor.{name}"
            if dotted is None:
                if isinstance(part.func, ast.Name) and name in ("int", "float", "len", "max", "min", "tuple", "range"):
                    continue
                return None
            if dotted.startswith(("math.", "torch.device", "torch.finfo", "torch.iinfo")):
                continue
            fact = lookup(dotted, file.target)
            if fact is None or not dotted.startswith("torch."):
                return None
            if fact.in_place or "random" in fact.effects or name.startswith(("empty", "new_empty")) or fact.copies:
                return None
            if name in _FREE or fact.is_view:
                continue
            if fact.launches:
                launches += 1
            factory = factory or name in _FACTORIES
        elif isinstance(part, ast.BinOp | ast.Compare | ast.UnaryOp):
            value = view.value(part)
            if value.is_tensor and value.device is not Device.HOST:
                launches += 1
        elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load):
            launches += any(view.value(index).is_tensor for index in _indices(part.slice))
    return _Work(launches, factory)


def _indices(index: ast.expr) -> list[ast.expr]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def _guarded(node: ast.expr, loop: ast.AST, written: frozenset[str], view: FunctionView) -> bool:
    """Whether a test on what the loop writes decides if the node runs: then it may run in one pass only."""
    child: ast.AST = node
    for parent in ancestors(view, node):
        if parent is loop:
            return False
        test = parent.test if isinstance(parent, ast.If | ast.IfExp | ast.While) and child is not parent.test else None
        if test is not None and (not _invariant(test, written) or _once(test)):
            return True
        if isinstance(parent, ast.ExceptHandler):
            return True
        child = parent
    return False


def _once(test: ast.expr) -> bool:
    """``if cache is None``: made in the first pass and kept."""
    return any(isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Is) for part in ast.walk(test))


def _changed_in_place(name: str, loop: ast.AST, view: FunctionView, node: ast.expr) -> bool:
    """Whether the pass writes into the tensor, or collects it as a new one of its own."""
    home = view.statement(node)
    for use in view.uses(name):
        parent = view.parent(use)
        if isinstance(parent, ast.Subscript) and parent.value is use and not isinstance(parent.ctx, ast.Load):
            return True
        if isinstance(parent, ast.Attribute) and parent.attr.endswith("_") and not parent.attr.endswith("__"):
            return True
        if isinstance(parent, ast.AugAssign) or kept(use, view):
            return True
        if isinstance(parent, ast.keyword) and parent.arg == "out":
            return True
    others = [s for s in view.assignments(name) if s is not home and loop in view.loops(s)]
    return bool(others)


def _written(name: str, view: FunctionView) -> bool:
    return any(
        (isinstance(parent := view.parent(use), ast.Subscript) and not isinstance(parent.ctx, ast.Load))
        or (isinstance(parent, ast.Attribute) and parent.attr.endswith("_"))
        for use in view.uses(name)
    )


def _from_sizes(node: ast.expr, view: FunctionView) -> bool:
    """Whether the expression reads sizes, devices, types, numbers and configuration only."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Load):
            parent = view.parent(part)
            if isinstance(parent, ast.Attribute):
                continue  # the whole chain is asked for
            if view.value(part).is_tensor and not _sized(part):
                return False
    return True


def _sized(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _SIZES


def _sized_parent(node: ast.expr, view: FunctionView, file: FileView) -> bool:
    for parent in ancestors(view, node):
        if isinstance(parent, ast.stmt):
            return False
        if (
            (isinstance(parent, ast.BinOp) or (isinstance(parent, ast.Call) and callee(parent) in _TABLES))
            and _work(parent, view, file) is not None
            and _from_sizes(parent, view)
        ):
            return True
    return False
