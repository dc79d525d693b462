"""What a rewrite computes is what the code computed before: both are run, by the script that prints it as a table."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.patches.splice import splice
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    path = ROOT / "benchmarks" / "patches" / "execute.py"
    spec = importlib.util.spec_from_file_location("patches_execute", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


execute = _load()
CASES = [case for case in execute.CASES if case.rule not in ("AWP301", "AWP405")]  # compiled for a minute


@pytest.fixture(scope="module")
def surroundings() -> Iterator[None]:
    with execute.surroundings("cpu"):
        yield


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_the_same_is_computed(case: Any, surroundings: None) -> None:
    outcome = execute.run_case(case, "cpu")
    assert outcome.wrong == []
    assert outcome.calls > outcome.raised


def test_every_rule_with_a_rewrite_is_run() -> None:
    assert {rule.id for rule in all_rules() if rule.rewrites()} <= {case.rule for case in execute.CASES}


@pytest.mark.parametrize(
    ("one", "other", "tolerance"),
    [
        (torch.zeros(2), torch.zeros(3), 8),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64), 8),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 16 * 2**-22]), 8),
        (torch.tensor([0.0]), torch.tensor([-0.0]), 0),
        (torch.tensor([float("nan"), 1.0]), torch.tensor([1.0, float("nan")]), 8),
        (torch.tensor([float("inf"), 1.0]), torch.tensor([-float("inf"), 1.0]), 8),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), 8),
        ([1, 2], [1, 2, 3], 0),
        ((1,), 1, 0),
        (1, 1.0, 0),
        (1.0, 1.5, 8),
    ],
)
def test_differences_are_seen(one: Any, other: Any, tolerance: int) -> None:
    with pytest.raises(execute.Different):
        execute.difference(one, other, tolerance)


def test_units_in_the_last_place() -> None:
    two, more = torch.tensor([0.5, 2.0]), torch.tensor([0.5, 2.0 + 3 * 2**-22])
    assert execute.difference(two, more, 8) == 3.0
    assert execute.difference(two, two.clone(), 0) == 0.0
    assert execute.difference(float("nan"), float("nan"), 0) == 0.0


def test_factories_make_the_same_tensors_on_the_device() -> None:
    text = (ROOT / "corpus/rules/AWP602/bad_chained.py").read_text(encoding="utf-8").replace(".cuda()", '.to("meta")')
    findings = run_rules(view_of_source(text, path="bad_chained.py"), all_rules()).findings
    fixed = splice(text, [e for f in findings if f.rule == "AWP602" and f.fix is not None for e in f.fix.edits])
    seen: list[list[tuple[Any, ...]]] = []
    for source in (text, fixed):
        module = ModuleType("chained")
        exec(compile(source, "chained", "exec"), module.__dict__)
        made: list[tuple[Any, ...]] = []

        class Layer(torch.nn.Module):  # type: ignore[misc]
            def forward(self, hidden_states: Any, *rest: Any, made: list[tuple[Any, ...]] = made) -> Any:
                made.append(rest)
                return hidden_states

        module.Decoder(torch.nn.ModuleList([Layer()]))(torch.zeros(1, 6, 2, dtype=torch.float64))
        seen.append(made)
    for one, other in zip(seen[0][0], seen[1][0], strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape and one.device == other.device
        if one.device.type != "meta":
            assert torch.equal(one, other)
