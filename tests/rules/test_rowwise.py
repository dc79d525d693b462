"""Rows that come to the host one by one, and penalties token by token: what is rewritten, and what is left alone."""

from __future__ import annotations

import pytest

from awp_lint.detector.finding import Finding
from awp_lint.detector.project.source import Source
from awp_lint.detector.semantics.model import view_of_source
from awp_lint.patches.plan import plan_file
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules

_ROWS = """
import torch
from torch import nn

@torch.no_grad()
def serve(model: nn.Module, x: torch.Tensor, texts: list, masks: torch.Tensor, size: int):
    y = model(x.cuda())
    mask = masks.cuda()
    kept = []
{loop}
    return kept
"""

_PENALTY = """
import torch

def penalise(tokens: torch.Tensor, scores: torch.Tensor, penalty: float, each: list):
{loop}
    return scores
"""


def _fixed(text: str, *rules: str) -> tuple[str, list[Finding]]:
    found = [f for f in run_rules(view_of_source(text, path="m.py"), all_rules()).findings if f.rule in rules]
    found = [f for f in found if f.fix is not None and f.fix.edits]
    return plan_file(Source.decode("m.py", text.encode()), found).after if found else text, found


def _indented(*lines: str) -> str:
    return "\n".join(f"    {line}" for line in lines)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            ("for row in y:", "    kept.append(row.int().tolist())"),
            ("for row in y.int().tolist():", "    kept.append(row)"),
        ),
        (
            ("for i, row in enumerate(y):", "    kept.append((i, row.detach().cpu()))"),
            ("for i, row in enumerate(y.detach().cpu()):", "    kept.append((i, row))"),
        ),
        (
            ("kept = [row.cpu().numpy() for row in y]",),
            ("kept = [row for row in y.cpu().numpy()]",),
        ),
        (
            ("for i in range(len(texts)):", "    kept.append(y[i].cpu())"),
            ("y_host = y.cpu()", "for i in range(len(texts)):", "    kept.append(y_host[i])"),
        ),
        (
            ("for i, text in enumerate(texts):", "    kept.append((text, y[i][:size].detach().cpu()))"),
            (
                "y_host = y.cpu()",
                "for i, text in enumerate(texts):",
                "    kept.append((text, y_host[i][:size].detach()))",
            ),
        ),
        (
            ("for i in range(len(texts)):", "    kept.append(y[i][mask[i]].tolist())"),
            (
                "y_host = y.cpu()",
                "mask_host = mask.cpu()",
                "for i in range(len(texts)):",
                "    kept.append(y_host[i][mask_host[i]].tolist())",
            ),
        ),
    ],
)
def test_rows_are_brought_together(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    result, found = _fixed(_ROWS.format(loop=_indented(*before)), "AWP101")
    assert result == _ROWS.format(loop=_indented(*after))
    assert all(finding.fix is not None and finding.fix.safety.value == "unsafe" for finding in found)


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param(("for row in y:", "    kept.append((row, row.cpu()))"), id="the row is wanted as well"),
        pytest.param(("for row in y:", "    if size:", "        kept.append(row.cpu())"), id="read now and then"),
        pytest.param(("for row in y:", "    y[0] = 0", "    kept.append(row.cpu())"), id="written in the loop"),
        pytest.param(("for row in y:", "    y.mul_(2)", "    kept.append(row.cpu())"), id="changed in the loop"),
        pytest.param(("for row in y:", "    kept.append(row.sigmoid().cpu())"), id="rounded otherwise in a batch"),
        pytest.param(("for i in range(size):", "    y = model(y)", "    kept.append(y[i].cpu())"), id="bound anew"),
        pytest.param(("for i in range(size):", "    y.add_(1)", "    kept.append(y[i].cpu())"), id="added to"),
        pytest.param(("for i in range(size):", "    kept.append(y[i, -1].cpu())"), id="one element of a row"),
        pytest.param(("for i in range(size):", "    kept.append(y[i][-1].cpu())"), id="one element, by itself"),
        pytest.param(("for i in range(1, size):", "    kept.append(y[i].cpu())"), id="not from the first"),
        pytest.param(("for i in range(size):", "    if i % 2:", "        kept.append(y[i].cpu())"), id="every second"),
        pytest.param(("for i in range(size):", "    kept.append((y[i] * 2).cpu())"), id="computed on the device"),
        pytest.param(("for i in texts:", "    kept.append(y[i].cpu())"), id="by index from elsewhere"),
    ],
)
def test_other_rows_are_left_alone(loop: tuple[str, ...]) -> None:
    text = _ROWS.format(loop=_indented(*loop))
    assert _fixed(text, "AWP101")[0] == text


_LOOP = (
    "for i in range(tokens.shape[0]):",
    "    for token in set(tokens[i].tolist()):",
    "        if scores[i, token] < 0:",
    "            scores[i, token] *= penalty",
    "        else:",
    "            scores[i, token] /= penalty",
)


def test_a_penalty_is_one_scatter() -> None:
    expected = _PENALTY.format(
        loop=_indented(
            "seen = scores.gather(1, tokens)",
            "scores.scatter_(1, tokens, torch.where(seen < 0, seen * penalty, seen / penalty))",
        )
    )
    for rule in ("AWP102", "AWP205"):
        assert _fixed(_PENALTY.format(loop=_indented(*_LOOP)), rule)[0] == expected
    spelled = [line.replace("*= penalty", "= scores[i, token] * penalty") for line in _LOOP]
    assert _fixed(_PENALTY.format(loop=_indented(*spelled)), "AWP205")[0] == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("set(tokens[i].tolist())", "tokens[i].tolist()"),  # twice where a token is there twice
        ("*= penalty", "*= each[i]"),  # a row's own
        ("*= penalty", "-= penalty"),
        ("< 0", "< scores[i, 0]"),
        ("range(tokens.shape[0])", "range(4)"),  # some of the rows
        ("scores[i, token] < 0", "scores[token, i] < 0"),
        ("set(tokens[i].tolist())", "set(tokens[i].tolist()) - {0}"),
        ("        else:", "        else:  # rare"),
        ("if scores[i, token] < 0:", "if scores[0, token] < 0:"),
    ],
)
def test_other_penalties_are_left_alone(old: str, new: str) -> None:
    loop = _indented(*_LOOP)
    assert old in loop
    text = _PENALTY.format(loop=loop.replace(old, new, 1))
    assert _fixed(text, "AWP205")[0] == text
