"""What a patch touches decides how it is proven; unit marks move with the text."""

from __future__ import annotations

import textwrap

import pytest

from awp_lint.detector.finding import Event, Mark, MarkKind
from awp_lint.detector.profiling.session import PlannedMark
from awp_lint.detector.verification.overlay import BoundImport, EditedFunction, moved, touched

BASE = textwrap.dedent("""\
    import torch

    LIMIT = 4

    class Model:
        scale: float = 1.0

        def __init__(self, size):
            self.size = size

        def forward(self, x):
            def inner(y):
                return y.cpu()
            return inner(x)

        @property
        def width(self):
            return self.size

        @width.setter
        def width(self, value):
            self.size = value

    def stream(x):
        yield x

    async def serve(x):
        return x

    def run(x, steps=3):
        for step in range(steps):
            x = x + 1
        return x
""")


@pytest.mark.parametrize(
    ("old", "new", "names", "ordinal"),
    [
        ("x = x + 1", "x = x + 2", ("run",), 0),
        ("return y.cpu()", "return y", ("Model", "forward"), 0),
        ("self.size = value", "self.size = int(value)", ("Model", "width"), 1),
    ],
)
def test_bodies_of_functions_can_be_exchanged(old: str, new: str, names: tuple[str, ...], ordinal: int) -> None:
    found = touched(BASE, BASE.replace(old, new))
    assert found.reason == ""
    assert [(f.names, f.ordinal) for f in found.functions] == [(names, ordinal)]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("LIMIT = 4", "LIMIT = 5", "when the module is loaded"),
        ("steps=3", "steps=4", "signature or the decorators of run"),
        ("@property", "@torch.no_grad()\n    @property", "signature or the decorators of width"),
        ("self.size = size", "self.size = 2 * size", "once an object"),
        ("yield x", "yield x + 1", "generator or a coroutine"),
        ("async def serve(x):\n    return x", "async def serve(x):\n    return x + 1", "generator or a coroutine"),
        ("class Model:", "class Model(torch.nn.Module):", "head of class Model"),
        ("scale: float = 1.0", "scale: float = 2.0", "when the module is loaded"),
        ("def stream", "EXTRA = 1\n\ndef stream", "adds or removes statements"),
    ],
)
def test_what_cannot_be_exchanged_live_is_named(old: str, new: str, words: str) -> None:
    assert words in touched(BASE, BASE.replace(old, new)).reason


def test_new_imports_are_bound() -> None:
    after = BASE.replace("import torch\n", "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n")
    found = touched(BASE, after.replace("x = x + 1", "x = F.relu(x)"))
    assert found.reason == ""
    assert found.imports == (BoundImport("torch.nn.functional", None, "F"), BoundImport("torch", "nn", "nn"))
    assert "relative" in touched(BASE, "from . import x\n" + BASE).reason


def test_the_new_lines_of_a_function_are_known() -> None:
    after = BASE.replace("x = x + 1", "y = x\n        x = y + 1")
    assert touched(BASE, after).functions == (EditedFunction(("run",), 0, (32, 33)),)


def test_comments_touch_nothing() -> None:
    found = touched(BASE, BASE.replace("LIMIT = 4", "LIMIT = 4  # so many"))
    assert (found.functions, found.reason) == ((), "")


def test_marks_move_with_the_text() -> None:
    line = BASE.split("\n").index("    for step in range(steps):") + 1
    mark = Mark(MarkKind.LOOP, line, 4, line + 1, 17, "run", line - 1, Event.NONE)
    planned = PlannedMark(0, "", "/m.py", "m", mark, "step")
    above = BASE.replace("LIMIT = 4", "LIMIT = 4\nMORE = 5\n")
    (at,) = moved([planned], BASE, above)
    assert (at.mark.line, at.mark.end_line, at.mark.function_line) == (line + 2, line + 3, line + 1)
    assert moved([planned], BASE, BASE.replace("range(steps)", "range(steps + 1)")) == []
