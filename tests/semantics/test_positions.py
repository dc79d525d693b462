"""Calls of whose result the last position alone is used."""

from __future__ import annotations

import ast

import pytest

from awp_lint.detector.semantics.positions import last_alone


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return model(x)[:, -1]", ["model(x)"]),
        ("logits = model(x)\n    return logits[:, -1, :]", ["model(x)"]),
        ("logits, past = model(x)\n    return logits[..., -1, :], past", ["model(x)"]),
        ("logits = model(x)\n    last = logits[:, -1:]\n    return last.sum(), last", ["model(x)"]),
        ("logits = model(x)\n    return logits[:, -1], logits.sum()", []),
        ("logits = model(x)\n    logits = other\n    return logits[:, -1]", []),
        ("logits = model(x)\n    return logits[:, :-1]", []),
        ("past, logits = model(x)\n    return logits[:, -1]", []),
        ("logits = model(x)\n    return lambda: logits", []),
        ("logits = model(x)\n    x = x[:, -1]\n    return x", []),
    ],
)
def test_last_alone(body: str, expected: list[str]) -> None:
    function = ast.parse(f"def f(x):\n    {body}\n").body[0]
    assert isinstance(function, ast.FunctionDef)
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    spots = last_alone(function)
    assert [ast.unparse(call) for call in calls if (call.lineno, call.col_offset) in spots] == expected
