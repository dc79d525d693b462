"""Classes whose base is an attribute of a class: they scan, whatever that attribute is."""

from __future__ import annotations

from pathlib import Path

from awp_lint.detector.config import Settings
from awp_lint.detector.scan import scan

SOURCE = """
import torch


class Outer:
    class Inner(torch.nn.Module):
        pass

    def made(self):
        return Outer


class Model(Outer.Inner):
    pass


class Odd(Outer.made):
    pass


class Odder(Outer.Missing.Deeper):
    pass

"""


def test_a_base_inside_a_class(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SOURCE)
    result = scan([str(tmp_path)], Settings())
    assert result.files == 1 and not result.problems
