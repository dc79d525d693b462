"""What the calls of a function say: what they take of its result, whether gradients are off around them."""

from __future__ import annotations

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.detector.semantics.view import Callers

CODE = """
import torch

def last(x):
    return x * 2

def some(x):
    return x * 3

def inner(x):
    return x * 4

def lonely(x):
    return x * 5

@torch.no_grad()
def outer(x):
    return middle(x)

def middle(x):
    return inner(x)

def main():
    a = last(1)[:, -1]
    b = last(2)
    c = some(3)
    with torch.inference_mode():
        d = some(4)[:, -1]
    for _ in range(3):
        outer(5)
    return a, b[:, -1], c, d
"""


def test_callers() -> None:
    found = {view.qualname: view.callers() for view in view_of_source(CODE).functions()}
    assert found["last"] == Callers(2, True, False)
    assert found["some"] == Callers(2, False, True)
    assert found["inner"] == Callers(1, False, True)
    assert found["lonely"] == Callers(0, False, False)


def test_names_that_are_spoken_of_and_gradients_that_are_off() -> None:
    file = view_of_source("from torch.nn.utils.fusion import fuse_conv_bn_eval as fold\nfold(a, b)\n" + CODE)
    assert file.speaks_of("fuse") and not file.speaks_of("quantise")
    views = {view.qualname: view for view in file.functions()}
    assert views["middle"].switches_off("x.outer") and not views["middle"].switches_off("x.inner")
