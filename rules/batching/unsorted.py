"""Batches of texts that are cut from a list as it comes, each padded to its longest."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.batching.calls import counted, model_call, named_model
from awp_lint.rules.common import argument, callee, loop_body, names_in, own_text, target_names
from awp_lint.rules.memo import says

_METHODS = frozenset({"encode", "encode_plus", "batch_encode_plus", "pad", "__call__"})
#: Methods by which a project's own tokenizer makes one tensor of rows of different lengths.
_PADS = re.compile(r"_?(batch|pad|collate|encode_batch|batch_encode|pad_batch|to_tensor)")
#: Somebody thought of the lengths already, or has them all alike.
_SORTED = re.compile(r"sort|bucket|group_by_len|length_", re.IGNORECASE)
_BY_LENGTH = re.compile(
    r"key\s*=\s*(len\b|lambda \w+:\s*-?\s*len\()|argsort\(\s*\[?\s*-?\s*len\(|by_length|sort\w*_by_len"
)


class Unsorted(NamedTuple):
    """The list that batches are cut from, and the call that pads one."""

    texts: ast.expr
    padded: ast.Call


def unsorted_batches(loop: ast.For, view: FunctionView, file: FileView) -> Iterator[Unsorted]:
    """``for i in range(0, len(texts), n): tokenizer(texts[i:i + n], padding=True)`` in front of a model, where nothing
    in the function brings the texts in the order of their lengths."""
    ranged = counted(loop)
    if not isinstance(ranged, ast.Call) or callee(ranged) not in ("range", "trange") or len(ranged.args) != 3:
        return
    length = ranged.args[1]
    if not isinstance(length, ast.Call) or callee(length) != "len" or len(length.args) != 1:
        return
    texts = length.args[0]
    if not isinstance(texts, ast.Name) or isinstance(ranged.args[2], ast.Constant) or not _taken(loop, texts, view):
        return
    calls = [part for s in loop_body(loop) for part in ast.walk(s) if isinstance(part, ast.Call)]
    calls = [call for call in calls if view.parent(call) is not None]
    padded = next((call for call in calls if _pads(call, view)), None)
    if padded is None or not any(_runs_model(call, view) for call in calls):
        return
    if _SORTED.search(own_text(view, file)) or says(file, _BY_LENGTH):
        return
    yield Unsorted(texts, padded)


def _taken(loop: ast.For, texts: ast.Name, view: FunctionView) -> bool:
    """Whether a pass cuts its batch out of the list: ``texts[i : i + n]``."""
    names = target_names(loop.target)
    return any(
        isinstance(part, ast.Subscript)
        and isinstance(part.value, ast.Name)
        and part.value.id == texts.id
        and isinstance(part.slice, ast.Slice)
        and part.slice.lower is not None
        and part.slice.upper is not None
        and bool(names_in(part.slice.lower) & names)
        for statement in loop_body(loop)
        for part in ast.walk(statement)
    )


def _pads(call: ast.Call, view: FunctionView) -> bool:
    """Whether a tokenizer pads a batch to its longest text."""
    func = call.func
    owner = func.value if isinstance(func, ast.Attribute) and callee(call) in _METHODS else func
    if view.value(owner).kind is Kind.TOKENIZER:
        padding = argument(call, None, "padding")
        return isinstance(padding, ast.Constant) and (padding.value is True or padding.value == "longest")
    if not isinstance(func, ast.Attribute) or not _PADS.fullmatch(func.attr) or not call.args:
        return False
    return (view.value(func.value).cls or "").endswith("Tokenizer")


def _runs_model(call: ast.Call, view: FunctionView) -> bool:
    kind = view.value(call.func).kind
    return (
        kind is Kind.MODULE or model_call(call, view) is not None or (kind is Kind.UNKNOWN and named_model(call.func))
    )
