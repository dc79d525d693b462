"""Views of files and functions: names, frequencies, calls, values put together."""

from __future__ import annotations

import ast
import textwrap

import pytest

from awp_lint.detector.semantics.model import FunctionModel, view_of_source
from awp_lint.detector.semantics.values import Kind

SOURCE = textwrap.dedent(
    """
    import numpy as np
    import torch
    import torch.nn.functional as F
    from torch import nn
    from .tools import helper as assist

    SCALE = 2

    def scaled(x: torch.Tensor) -> torch.Tensor:
        np = 3
        return F.softmax(x * SCALE, -1) + np.sum(x)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

        def forward(self, x: torch.Tensor):
            import math
            for layer in self.inner:
                x = layer(x)
                if x.sum() > math.pi:
                    x = self.shrink(x)
            if self.table is None:
                self.table = torch.zeros(3)
            return scaled(x)

        def shrink(self, x):
            return assist(x)
    """
)


@pytest.fixture(scope="module")
def views() -> dict[str, FunctionModel]:
    return {view.qualname: view for view in view_of_source(SOURCE, "pkg/net.py").functions()}


def calls(view: FunctionModel) -> dict[str, ast.Call]:
    return {ast.unparse(node): node for node in view.nodes(ast.Call) if isinstance(node, ast.Call)}


def test_file(views: dict[str, FunctionModel]) -> None:
    file = views["<module>"].file
    assert (file.path, file.module) == ("pkg/net.py", "pkg.net")
    assert file.imports == {
        "np": "numpy", "torch": "torch", "F": "torch.nn.functional", "nn": "torch.nn", "assist": "pkg.tools.helper",
    }  # fmt: skip
    assert list(views) == ["<module>", "scaled", "Net.__init__", "Net.forward", "Net.shrink"]


def test_qualified(views: dict[str, FunctionModel]) -> None:
    scaled = calls(views["scaled"])
    qualified = views["scaled"].qualified
    assert qualified(scaled["F.softmax(x * SCALE, -1)"].func) == "torch.nn.functional.softmax"
    assert qualified(scaled["np.sum(x)"].func) != "numpy.sum"  # a local name hides the module
    forward = calls(views["Net.forward"])
    qualified = views["Net.forward"].qualified
    assert qualified(forward["scaled(x)"].func) == "pkg.net.scaled"
    assert qualified(forward["self.shrink(x)"].func) == "pkg.net.Net.shrink"
    assert qualified(forward["x.sum()"].func) == "torch.Tensor.sum"
    assert qualified(ast.parse("math.pi", mode="eval").body) == "math.pi"
    assert qualified(forward["layer(x)"].func) is None
    assert views["Net.shrink"].qualified(calls(views["Net.shrink"])["assist(x)"].func) == "pkg.tools.helper"


def test_classes(views: dict[str, FunctionModel]) -> None:
    assert views["Net.forward"].class_name == "pkg.net.Net"
    assert views["Net.forward"].class_bases == {"torch.nn.Module"}
    assert views["scaled"].class_name is None and views["scaled"].class_bases == frozenset()


def test_frequencies(views: dict[str, FunctionModel]) -> None:
    forward = views["Net.forward"]
    nodes = calls(forward)
    assert str(forward.frequency(forward.node)) == "request"
    assert str(forward.frequency(nodes["layer(x)"])) == "request×layer"
    assert str(forward.frequency(nodes["torch.zeros(3)"])) == "setup"  # made once
    assert str(views["Net.shrink"].frequency(views["Net.shrink"].node)) == "request×layer"
    assert str(views["scaled"].frequency(views["scaled"].node)) == "request"


def test_targets(views: dict[str, FunctionModel]) -> None:
    forward = views["Net.forward"]
    assert forward.targets(calls(forward)["scaled(x)"]) == ("pkg.net.scaled",)
    assert forward.targets(calls(forward)["self.shrink(x)"]) == ("pkg.net.Net.shrink",)
    assert forward.targets(calls(forward)["x.sum()"]) == ()


def test_values(views: dict[str, FunctionModel]) -> None:
    forward = views["Net.forward"]
    assert forward.value(calls(forward)["layer(x)"].func).kind is Kind.MODULE
    assert forward.value(calls(forward)["x.sum()"]).is_tensor


def test_nested_functions_have_an_outer_view() -> None:
    source = "import torch\ndef f(x):\n    def g():\n        return x\n    return g\nclass A:\n    def m(self): ..."
    views = {view.qualname: view for view in view_of_source(source).functions()}
    outer = views["f.g"].outer()
    assert outer is not None and outer.qualname == "f"
    assert views["f"].outer() is None and views["A.m"].outer() is None


def test_syntax_errors_are_the_callers() -> None:
    with pytest.raises(SyntaxError):
        view_of_source("def f(:")
