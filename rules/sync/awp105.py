"""AWP105 data-dependent-shape."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.library import lookup
from awp_lint.detector.semantics.values import Device, DTypeClass, Kind, Value
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import argument, frequency_reason, host_named, hot_frequency, often, reasons, short, sureness
from awp_lint.rules.edits import pure_chain
from awp_lint.rules.plain import no_tensor
from awp_lint.rules.sync.compressing import compresses, cuts

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_SHAPE_CALLS = frozenset({"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive"})

_ADVICE = {
    "nonzero": "work on the mask itself (`torch.where` with three arguments, `masked_fill`), or use `nonzero_static`",
    "argwhere": "work on the mask itself (`torch.where` with three arguments, `masked_fill`)",
    "where": "use the three-argument `torch.where`, or keep the mask",
    "masked_select": "multiply by the mask or use `torch.where`, so that the shape stays fixed",
    "unique": "keep the counts on the host where they come from, or compare neighbours of the sorted tensor",
    "unique_consecutive": "keep the counts on the host where they come from, or compare neighbours",
    "repeat_interleave": "pass `output_size=` where the total is known on the host",
}


@dataclass(frozen=True, slots=True)
class _MaskAssignment:
    """``target[mask] = value``, and by how many trailing dimensions the target exceeds the mask (None: not known)."""

    statement: ast.Assign
    target: ast.expr
    mask: ast.expr
    value: ast.expr
    extra: int | None
    assumed: bool = False  # the extra dimensions are taken to be none: nothing says so


class DataDependentShape(Rule):
    """Operations whose result has a size that only the device knows."""

    id = "AWP105"
    name = "data-dependent-shape"
    root_cause = RootCause.RUNTIME
    cost_us = 80.0
    event = Event.WAIT
    words = (b"[", b"nonzero", b"argwhere", b"masked_select", b"unique", b"repeat_interleave", b"where")
    nodes = (ast.Subscript, ast.Call)
    calls = frozenset(_ADVICE)
    repeated = True
    doubted = True

    summary = "an operation waits for the device because its result's size depends on the data"
    what = """
        Reading `x[mask]` with a boolean mask, assigning a tensor through a mask, `nonzero`, `argwhere`, `torch.where`
        with one argument, `masked_select`, `unique`, and `repeat_interleave` with a tensor of repeats and no
        `output_size`, on device tensors in code that runs for every step, token, layer or item.
        """
    why = """
        The host has to know the size of the result to allocate it, so it waits for the device to count. The shape then
        changes from call to call, which forbids CUDA graphs and makes compiled code recompile or break.
        """
    fine = """
        - `x[mask] = 0.0` with a Python number: PyTorch turns it into `masked_fill_`, nothing waits.
        - Indexing with integer tensors, slices, `None` or host masks.
        - `torch.where(mask, a, b)`; `repeat_interleave` with a Python number or with `output_size`.
        - Once a request, in set-up, tests, training and debug code.
        """
    safety = """
        For a mask assignment whose value is 0-d or broadcasts over the masked positions the rewrite is unsafe only in
        that it computes the whole tensor: `x.copy_(torch.where(mask, value, x))` keeps the assignment in place. The
        same holds where what is assigned is computed elementwise from reads through that mask. `nonzero()` whose
        result Python only counts and reads becomes one copy of the mask, searched on the host. Where a `while` loop
        goes on by what its passes find (boxes that suppress each other), and its function does light work on its
        arguments alone, these are copied to the host once and the result is brought back: right where they are small.
        Other spellings get a recommendation.
        """
    manual = True
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.nonzero.html",
        "vllm-project/vllm-omni#1105 mask assignment in a forward",
        "huggingface/diffusers#13564 mask indexing in a loop over samples",
    )
    bad = """
        import torch

        class Padder(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList, dim: int) -> None:
                super().__init__()
                self.layers = layers
                self.pad = torch.nn.Parameter(torch.zeros(dim))

            def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
                keep = attention_mask.bool()
                for layer in self.layers:
                    hidden_states = layer(hidden_states)
                    hidden_states[~keep] = self.pad
                return hidden_states
        """
    good = """
        import torch

        class Padder(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList, dim: int) -> None:
                super().__init__()
                self.layers = layers
                self.pad = torch.nn.Parameter(torch.zeros(dim))

            def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
                keep = attention_mask.bool()
                for layer in self.layers:
                    hidden_states = layer(hidden_states)
                    hidden_states = torch.where(keep.unsqueeze(-1), hidden_states, self.pad)
                return hidden_states
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if isinstance(node, ast.Subscript):
            found = _mask_index(node, view)
        else:
            assert isinstance(node, ast.Call)
            found = _shape_call(node, view, file)
        if found is None:
            return
        value, source, action, data = found
        if host_named(source):
            return
        frequency = hot_frequency(view, node)
        if frequency is None:
            return
        confidence = sureness(view, node, frequency, value)
        what = f"`{short(node)}`"
        if data is not None:
            what = f"assigning a tensor through the mask `{short(data.mask, 40)}`"
        yield Candidate(
            node=data.statement if data is not None else node,
            message=f"{what} waits for the device {often(frequency)}: its size depends on the data".replace("  ", " "),
            action=action,
            confidence=confidence,
            frequency=frequency,
            why=(*reasons(value, source), *frequency_reason(frequency)),
            data=data,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        import libcst as cst

        from awp_lint.rules.sync.masks import host_index, masked_update
        from awp_lint.rules.sync.onhost import on_host

        data = candidate.data
        if not isinstance(data, _MaskAssignment):
            assert isinstance(candidate.node, ast.expr)
            node = candidate.node
            return host_index(node, definition) or masked_update(node, definition) or on_host(node, definition)
        if data.extra is None:
            return masked_update(data.statement, definition)
        statement = definition.node(data.statement)
        if not (isinstance(statement, cst.Assign) and len(statement.targets) == 1):
            return None
        target = statement.targets[0].target
        if not (isinstance(target, cst.Subscript) and len(target.slice) == 1 and _plain(target.value)):
            return None
        mask = definition.text(data.mask)
        if data.extra:
            mask = f"{mask if _is_atom(data.mask) else f'({mask})'}{'.unsqueeze(-1)' * data.extra}"
        tensor = definition.text(data.target)
        where = definition.torch_name("torch.where")
        new = f"{tensor}.copy_({where}({mask}, {definition.text(data.value)}, {tensor}))"
        return Fix(
            title=f"assign with `torch.where`, so that nothing waits for the count of `{short(data.mask, 40)}`",
            safety=Safety.UNSAFE,
            edits=(definition.replace(data.statement, new),),
            effects=(Effect.MEMORY, Effect.TIMING),
            requires=(
                f"`{short(data.value, 40)}` is the same for every masked position (0-d, or trailing dimensions only)",
                *((f"`{short(data.mask, 40)}` has the shape of `{short(data.target, 40)}`",) if data.assumed else ()),
            ),
        )


_Found = tuple[Value, ast.expr, str, _MaskAssignment | None]


def _mask_index(node: ast.Subscript, view: FunctionView) -> _Found | None:
    parts = [part for part in _index_parts(node.slice) if not isinstance(part, ast.Slice | ast.Constant)]
    parts = [part for part in parts if not no_tensor(part, view)]
    base = view.value(node.value) if parts else None
    if base is None or base.kind not in (Kind.TENSOR, Kind.UNKNOWN) or base.device is Device.HOST:
        return None
    mask = next((part for part in parts if _is_mask(view.value(part))), None)
    if mask is None:
        return None
    value = view.value(mask)
    if not isinstance(node.ctx, ast.Store):
        if isinstance(node.ctx, ast.Del):
            return None
        if compresses(view.statement(node), mask, view) or _compressed_before(node, view):
            return None
        name = short(mask, 40)
        return value, mask, f"keep the shape: `torch.where` or multiply by `{name}`, or compress once a request", None
    parent = view.parent(node)
    if isinstance(parent, ast.AugAssign):
        return value, mask, f"use `torch.where({short(mask, 40)}, …)` on the whole tensor", None
    if not (isinstance(parent, ast.Assign) and parent.targets == [node]):
        return None
    assigned = view.value(parent.value)
    if not assigned.is_tensor or assigned.device is Device.HOST:
        return None  # a Python number fills; what is not known is not reported
    extra = _extra_dims(node.value, mask, base, value, assigned) if mask is node.slice else None
    # What an object keeps cannot have as many rows as the mask happens to hold: it broadcasts.
    alike = assigned.rank == 0 or (assigned.rank is None and _own_attribute(parent.value))
    assumed = extra is None and mask is node.slice and alike and _same_rank_possible(base, value) and pure_chain(mask)
    data = _MaskAssignment(parent, node.value, mask, parent.value, 0 if assumed else extra, assumed)
    return value, mask, f"use `torch.where({short(mask, 40)}, …)` on the whole tensor", data


def _compressed_before(node: ast.Subscript, view: FunctionView) -> bool:
    """Whether the name was cut down by another mask above in the same block: there is no fixed shape left to keep."""
    statement = view.statement(node)
    parent = view.parent(statement) if statement is not None else None
    block = getattr(parent, "body", None)
    if not (isinstance(node.value, ast.Name) and isinstance(block, list) and statement in block):
        return False
    return any(
        target == node.value.id and _may_be_mask(cut.slice, view)
        for earlier in block[: block.index(statement)]
        for target, cut in cuts(earlier)
    )


def _may_be_mask(node: ast.expr, view: FunctionView) -> bool:
    """Whether an index is a mask, or a name that takes the result of a comparison."""
    if _is_mask(view.value(node)):
        return True
    bound = view.assignments(node.id) if isinstance(node, ast.Name) else ()
    return any(isinstance(made, ast.Assign) and isinstance(made.value, ast.Compare) for made in bound)


def _own_attribute(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _same_rank_possible(base: Value, mask: Value) -> bool:
    return base.rank is None or mask.rank is None or base.rank == mask.rank


def _index_parts(index: ast.expr) -> list[ast.expr]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def _is_mask(value: Value) -> bool:
    return value.is_tensor and value.dtype is DTypeClass.BOOL and value.device is not Device.HOST and value.rank != 0


def _extra_dims(target: ast.expr, mask: ast.expr, base: Value, value: Value, assigned: Value) -> int | None:
    """Trailing dimensions the mask lacks, where the assigned value fits all masked positions alike."""
    extra: int | None = None
    if base.rank is not None and value.rank is not None:
        extra = base.rank - value.rank
    elif isinstance(mask, ast.Compare) and ast.dump(mask.left) == ast.dump(target):
        extra = 0
    if extra is None or extra < 0 or assigned.rank is None or assigned.rank > extra:
        return None
    return extra


def _shape_call(node: ast.Call, view: FunctionView, file: FileView) -> _Found | None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in _ADVICE:
        return None
    dotted = view.qualified(node.func)
    if dotted is None:
        if not isinstance(node.func, ast.Attribute) or not _named_like_tensor_method(node, name, view):
            return None
        dotted = f"torch.Tensor.{name}"
    if not dotted.startswith("torch."):
        return None
    fact = lookup(dotted, file.target)
    if fact is None or not fact.waits:
        return None
    is_method = dotted.startswith("torch.Tensor.")
    if is_method and isinstance(node.func, ast.Attribute):
        source = node.func.value
    elif node.args:
        source = node.args[0]
    else:
        return None
    if fact.wait_condition == "one-argument" and (is_method or len(node.args) + len(node.keywords) != 1):
        return None
    if fact.wait_condition == "tensor-repeats":
        repeats = argument(node, 0 if is_method else 1, "repeats")
        if argument(node, None, "output_size") is not None:
            return None
        if repeats is None:
            if is_method or node.keywords:
                return None
        elif not view.value(repeats).is_tensor or view.value(repeats).device is Device.HOST:
            return None
    value = view.value(source)
    if not value.is_tensor or value.device is Device.HOST:
        return None
    return value, source, _ADVICE[name], None


def _named_like_tensor_method(node: ast.Call, name: str, view: FunctionView) -> bool:
    assert isinstance(node.func, ast.Attribute)
    return name in _SHAPE_CALLS and view.value(node.func.value).is_tensor


def _plain(node: object) -> bool:
    """A name or a dotted chain: evaluating it twice costs and changes nothing."""
    import libcst as cst

    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, cst.Name)


def _is_atom(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
