"""What surely is no tensor, by syntax and bindings."""

from __future__ import annotations

import ast

import pytest

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.rules.plain import no_tensor

_HEAD = "import torch\ndef f(self, x: torch.Tensor, flag: bool | None, scale: float, mask=None):\n"


def _last(body: str) -> bool:
    """The answer about the argument of the last call of ``probe``."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    view = next(v for v in view_of_source(_HEAD + lines).functions() if v.qualname == "f")
    calls = [n for n in view.nodes(ast.Call) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "probe"]
    return no_tensor(calls[-1].args[0], view)


@pytest.mark.parametrize(
    "body",
    [
        "probe(1)",
        "probe(flag)",
        "probe(x.shape[0] * 2)",
        "b, n = x.shape\nprobe(b > n)",
        "a, b = len(x), mask\nprobe(a)",
        "n = x.size(1)\nn += 1\nprobe(-n)",
        "for i in range(3):\n    probe(i)",
        "for i, y in enumerate(x):\n    probe(i)",
        "probe(self.config.use_cache)",
        "probe(self.head_dim)",
        "probe(mask == 'eager')",
        "probe(not x)",
        "probe(" + " + ".join(["1"] * 900) + ")",
        "n: int = len(x)\nprobe(n)",
    ],
)
def test_numbers_switches_and_settings_are_none(body: str) -> None:
    assert _last(body)


@pytest.mark.parametrize(
    "body",
    [
        "probe(x)",
        "probe(mask)",
        "probe(x[0])",
        "probe(scale * x)",
        "probe(self.lengths)",
        "a, b = len(x), mask\nprobe(b)",
        "n = 1\nn = x.sum()\nprobe(n)",
        "n = 1\nn += x.sum()\nprobe(n)",
        "for i, y in enumerate(x):\n    probe(y)",
        "for y in x:\n    probe(y)",
        "n = len([n for n in x])\nprobe(n)",
        "n = len((y := x))\nprobe(y)",
        "if isinstance(scale, torch.Tensor):\n    probe(scale)",
        "probe(1 in x)",
        "a = b = 0\nfor _ in range(3):\n    a, b = b, a\nprobe(a)",
        "len = sum\nprobe(len(x))",
        "with mask as n:\n    probe(n)",
        "probe(elsewhere)",
    ],
)
def test_what_only_a_value_tells_is_left_open(body: str) -> None:
    assert not _last(body)
