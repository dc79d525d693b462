"""Host tensors made of counts alone are made on the device, and only where the device gives the same bits."""

from __future__ import annotations

import textwrap

import pytest

from awp_lint.detector.project.source import Source
from awp_lint.detector.semantics.model import view_of_source
from awp_lint.patches.plan import plan_file
from awp_lint.rules.engine import run_rules
from awp_lint.rules.memory.awp602 import CreateThenMove
from awp_lint.rules.registry import all_rules

_CODE = """
import torch
from torch import nn

class Layer(nn.Module):
    def forward(self, x: torch.Tensor, n: int, other: torch.Tensor) -> torch.Tensor:
        x = x.cuda()
{lines}
"""


def _fixed(*lines: str) -> str:
    text = _CODE.format(lines="\n".join(f"        {line}" for line in lines))
    found = [f for f in run_rules(view_of_source(text, path="m.py"), all_rules()).findings if f.rule in _RULES]
    found = [f for f in found if f.fix is not None and f.fix.edits and f.fix.title.endswith("on the device")]
    return plan_file(Source.decode("m.py", text.encode()), found).after if found else text


_RULES = ("AWP601", "AWP603")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            ("index = torch.arange(n)", "return x[index.view(-1, 1)]"),
            ("index = torch.arange(n, device=x.device)", "return x[index.view(-1, 1)]"),
        ),
        (
            ("index = torch.arange(n) * 2 + torch.ones(n, dtype=torch.long)", "return x[index]"),
            (
                "index = torch.arange(n, device=x.device) * 2 + torch.ones(n, dtype=torch.long, device=x.device)",
                "return x[index]",
            ),
        ),
        (
            ("places = torch.arange(1, n)", "places = places[None].to(x.device)", "return x + places"),
            ("places = torch.arange(1, n, device=x.device)", "places = places[None]", "return x + places"),
        ),
    ],
)
def test_factories_get_the_device(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    assert _fixed(*before) == _CODE.format(lines="\n".join(f"        {line}" for line in after))


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(("index = torch.arange(n)", "self.seen = index", "return x[index]"), id="kept by somebody"),
        pytest.param(("index = torch.arange(n)", "y = x[index]", "return y, index.tolist()"), id="read on the host"),
        pytest.param(("index = (torch.arange(n) / 3).long()", "return x[index]"), id="division rounds otherwise"),
        pytest.param(("index = torch.arange(n) + other.cpu()", "return x[index]"), id="not of counts alone"),
        pytest.param(("index = torch.randint(0, 3, (n,))", "return x[index]"), id="random numbers"),
        pytest.param(
            ("index = torch.arange(n)", "x = x.cpu()", "x = x.cuda()", "return x[index]"), id="another tensor by then"
        ),
        pytest.param(
            ("index = torch.arange(n)", "if n:", "    index = index + 1", "return x[index]"), id="either of two"
        ),
        pytest.param(
            ("p = torch.arange(n)", "p = p.expand(3, -1).to(x.device)", "p += 1", "return x + p"), id="written into"
        ),
        pytest.param(("p = torch.arange(n)", "return p.expand(3, -1).to(x.device)"), id="a view to somebody else"),
    ],
)
def test_others_stay_where_they_are(lines: tuple[str, ...]) -> None:
    assert _fixed(*lines) == _CODE.format(lines="\n".join(f"        {line}" for line in lines))


def test_a_bracket_on_a_line_of_its_own_stays_there() -> None:
    made = "torch.arange(hidden_states.shape[1]).to(hidden_states.device)"
    split = "torch.arange(\n            0, hidden_states.shape[1], dtype=torch.long{device}\n        ){to}"
    code = textwrap.dedent(CreateThenMove.bad)
    assert made in code
    text = code.replace(made, split.format(device="", to=".to(hidden_states.device)"))
    found = [f for f in run_rules(view_of_source(text, path="m.py"), all_rules()).findings if f.rule == "AWP602"]
    after = plan_file(Source.decode("m.py", text.encode()), found).after
    assert after == code.replace(made, split.format(device=", device=hidden_states.device", to=""))
