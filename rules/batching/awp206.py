"""AWP206 serial-loader."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Edit, Effect, Event, Fix, MarkKind, RootCause, Safety
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.batching.calls import model_call
from awp_lint.rules.common import (
    IDLE,
    argument,
    assigned_name,
    callee,
    frequency_reason,
    names_in,
    opaque,
    short,
)
from awp_lint.rules.edits import add_keyword

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_LOADERS = (
    "torch.utils.data.DataLoader",
    "torch.utils.data.dataloader.DataLoader",
    "torch_geometric.loader.DataLoader",
)
_IN_MEMORY = ("TensorDataset", "Subset")
_LEARNS = frozenset({"backward", "zero_grad"})


class SerialLoader(Rule):
    """An inference loop that waits for a loader without workers, or for batches of one."""

    id = "AWP206"
    name = "serial-loader"
    root_cause = RootCause.SCHEDULING
    confidence = Confidence.MEDIUM
    cost_us = 3000.0
    event = Event.HOST
    mark = MarkKind.LOOP
    words = (b"DataLoader(",)
    nodes = (ast.Call,)
    calls = frozenset({"DataLoader"})
    anywhere = True

    summary = "an inference loop waits for a data loader without workers, or gets one item at a time"
    what = """
        A `DataLoader` with `num_workers=0` (the default) or batches of one item (the default as well), over which a
        loop of the same function runs a model without training it.
        """
    why = """
        Without workers the next batch is read, decoded and collated while the device waits, and the device runs while
        the loader waits. Batches of one run the model at batch size 1.
        """
    fine = """
        - Data in memory already (`TensorDataset`), where workers only cost; a loader built from settings.
        - Training loops, tests and benchmarks.
        - Items that cannot be collated: then only the workers help.
        """
    safety = """
        Unsafe: `num_workers=4` and `pin_memory=True` are passed. Workers need a dataset that can be pickled, memory for
        the batches in flight, and draw random numbers of their own. Larger batches and `non_blocking=True` copies are a
        recommendation.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    )
    bad = """
        import torch
        from torch.utils.data import DataLoader, Dataset

        @torch.inference_mode()
        def predict(model: torch.nn.Module, images: Dataset) -> list[torch.Tensor]:
            found = []
            for batch in DataLoader(images, batch_size=32):
                found.append(model(batch.to("cuda")))
            return found
        """
    good = """
        import torch
        from torch.utils.data import DataLoader, Dataset

        @torch.inference_mode()
        def predict(model: torch.nn.Module, images: Dataset) -> list[torch.Tensor]:
            found = []
            for batch in DataLoader(images, batch_size=32, num_workers=4, pin_memory=True):
                found.append(model(batch.to("cuda", non_blocking=True)))
            return found
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) != "DataLoader" or view.qualified(node.func) not in _LOADERS or opaque(node):
            return
        if view.regions(node) & IDLE or _is_true(argument(node, 2, "shuffle")) or _in_memory(node, view):
            return
        found = [text for text in (_single(node), _serial(node)) if text is not None]
        loop = _loop_over(node, view) if found else None
        if loop is None:
            return
        run = _model_in(loop, view)
        if run is None:
            return
        frequency = view.frequency(run)
        around = loop if isinstance(loop, ast.For) else view.statement(loop.iter)
        inference = bool(view.regions(run) & Region.INFERENCE)
        yield Candidate(
            node=node,
            message=f"the loop running `{short(run.func, 40)}(...)` waits for a loader with {' and '.join(found)}",
            action="give the loader workers, pinned memory and batches (`num_workers`, `pin_memory`, `batch_size`)",
            confidence=self.confidence if inference else Confidence.LOW,
            frequency=frequency,
            why=(f"line {around.lineno} goes over it", *frequency_reason(frequency)),
            lines=(around, around),
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        call = candidate.node
        assert isinstance(call, ast.Call)
        if _serial(call) is None:
            return None  # how large a batch may be is the user's to say
        workers, added = argument(call, 5, "num_workers"), []
        edits: list[Edit] = []
        if workers is None:
            added.append("num_workers=4")
        else:
            edits.append(definition.replace(workers, "4"))
        if argument(call, 7, "pin_memory") is None:
            added.append("pin_memory=True")
        if added:
            edits.append(add_keyword(call, ", ".join(added), definition))
        return Fix(
            title="give the loader workers and pinned memory",
            safety=Safety.UNSAFE,
            edits=tuple(edits),
            effects=(Effect.MEMORY, Effect.RNG, Effect.TIMING),
            requires=("the dataset can be sent to worker processes and does not use the device",),
        )


def _single(call: ast.Call) -> str | None:
    if argument(call, 4, "batch_sampler") is not None or argument(call, None, "collate_fn") is not None:
        return None
    size = argument(call, 1, "batch_size")
    if size is None or (isinstance(size, ast.Constant) and size.value == 1):
        return "batches of one"
    return None


def _serial(call: ast.Call) -> str | None:
    workers = argument(call, 5, "num_workers")
    if workers is None or (isinstance(workers, ast.Constant) and workers.value == 0):
        return "no workers"
    return None


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _in_memory(call: ast.Call, view: FunctionView) -> bool:
    dataset = argument(call, 0, "dataset")
    if dataset is None:
        return True
    if isinstance(dataset, ast.Call):
        return callee(dataset) in _IN_MEMORY
    known = view.value(dataset)
    if known.kind is Kind.TENSOR or (known.cls or "").rpartition(".")[2] in _IN_MEMORY:
        return True
    if not isinstance(dataset, ast.Name):
        return False
    made = [s.value for s in view.assignments(dataset.id) if isinstance(s, ast.Assign)]
    return any(isinstance(value, ast.Call) and callee(value) in _IN_MEMORY for value in made)


def _loop_over(call: ast.Call, view: FunctionView) -> ast.For | ast.comprehension | None:
    """The loop of this definition that goes over the loader."""
    name = assigned_name(view, call)
    for loop in view.nodes(ast.For, ast.comprehension):
        assert isinstance(loop, ast.For | ast.comprehension)
        if any(part is call for part in ast.walk(loop.iter)):
            return loop
        if name is not None and name in names_in(loop.iter) and loop.iter.lineno > call.lineno:
            return loop
    return None


def _model_in(loop: ast.For | ast.comprehension, view: FunctionView) -> ast.Call | None:
    """A call of the loop that runs a model; None where the loop trains one."""
    passes = loop.body if isinstance(loop, ast.For) else [view.statement(loop.iter)]
    calls = [part for one in passes for part in ast.walk(one) if isinstance(part, ast.Call)]
    if any(callee(call) in _LEARNS for call in calls):
        return None
    own = [call for call in calls if view.parent(call) is not None]
    return next((c for c in own if view.value(c.func).kind is Kind.MODULE or model_call(c, view) is not None), None)
