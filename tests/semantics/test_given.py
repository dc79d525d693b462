"""What calls pass in lists decides where their tensors lie."""

from __future__ import annotations

import ast

import pytest

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.detector.semantics.values import Device

CODE = """
from collections.abc import Sequence
import torch

def count(masks: Sequence[torch.Tensor]):
    for mask in masks:
        mask.sum()

def cut(scores: torch.Tensor):
    masks = []
    for row in scores:
        masks.append({made})
    count(masks)
"""


@pytest.mark.parametrize(("made", "expected"), [("(row > 0).cpu()", Device.HOST), ("row > 0", Device.AMBIENT)])
def test_tensors_of_a_list(made: str, expected: Device) -> None:
    view = next(v for v in view_of_source(CODE.format(made=made)).functions() if v.qualname == "count")
    call = next(node for node in view.nodes(ast.Call) if isinstance(node, ast.Call))
    assert isinstance(call.func, ast.Attribute)
    assert view.value(call.func.value).device is expected
