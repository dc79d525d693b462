"""The tables of library facts: readable, true of the installed libraries, answered by version."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path

import pytest

from awp_lint.detector.semantics.interpret.results import RULES as IMPLEMENTED
from awp_lint.detector.semantics.library import facts, lookup
from awp_lint.detector.semantics.library.facts import FactError, parse, table
from awp_lint.detector.semantics.values import DTypeClass
from awp_lint.detector.semantics.view import Target


def _resolve(dotted: str) -> object:
    """The object of a dotted name; raises AttributeError or ImportError."""
    parts = dotted.split(".")
    found: object = importlib.import_module(parts[0])
    for at, part in enumerate(parts[1:], 1):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(".".join(parts[: at + 1]))
    return found


def _names(root: str) -> list[str]:
    return sorted(name for name in table() if name.partition(".")[0] == root)


@pytest.mark.torch
def test_every_torch_fact_names_a_real_api() -> None:
    torch = pytest.importorskip("torch")
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    missing = []
    for name in _names("torch"):
        if not any(fact.holds(version) for fact in table()[name]):
            continue
        try:
            _resolve(name)
        except (AttributeError, ImportError):
            missing.append(name)
    assert missing == []


def test_every_numpy_fact_names_a_real_api() -> None:
    pytest.importorskip("numpy")
    for name in _names("numpy"):
        _resolve(name)


def test_every_standard_library_fact_names_a_real_api() -> None:
    for root in ("builtins", "math", "itertools", "collections", "copy", "time", "os", "random", "json", "functools"):
        for name in _names(root):
            _resolve(name)


def test_every_result_rule_is_described_and_implemented() -> None:
    used = {fact.result.rule for found in table().values() for fact in found}
    assert used <= set(facts.RULES)
    assert set(facts.RULES) == set(IMPLEMENTED)


def test_one_line_a_fact_without_repetition() -> None:
    for path in Path(facts.__file__).parent.glob("*.facts"):
        seen: set[tuple[str, object]] = set()
        for fact in parse(path.read_text(encoding="utf-8")):
            assert (fact.name, fact.since) not in seen, f"{path.name}: {fact.name} stands twice"
            seen.add((fact.name, fact.since))


def test_lookup_gives_results_and_effects() -> None:
    nonzero = lookup("torch.Tensor.nonzero")
    assert nonzero is not None
    assert (nonzero.result.dtype, nonzero.result.rank) == (DTypeClass.INT, 2)
    assert nonzero.always_waits and nonzero.launches and not nonzero.is_view
    where = lookup("torch.where")
    assert where is not None and where.waits and not where.always_waits
    assert where.wait_condition == "one-argument"
    item = lookup("torch.Tensor.item")
    assert item is not None and item.always_waits and item.copies and not item.allocates
    view = lookup("torch.Tensor.view")
    assert view is not None and view.is_view and not view.waits and not view.launches
    assert lookup("torch.no_such_function") is None


def test_lookup_by_version() -> None:
    assert lookup("torch.accelerator.synchronize", Target(torch=(2, 4))) is None
    assert lookup("torch.accelerator.synchronize", Target(torch=(2, 6))) is not None
    assert lookup("torch.accelerator.synchronize") is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[torch]\nzeros", "line 2: zeros has no result"),
        ("[torch]\nzeros nothing", "no such result rule: nothing"),
        ("[torch]\nzeros make shiny", "line 2: no such effect: shiny"),
        ("[torch]\nzeros make.string", "line 2"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(text: str, message: str) -> None:
    with pytest.raises(FactError, match=message):
        list(parse(text))


def test_sections_names_and_comments() -> None:
    text = "# a table\n[a b | launch]\nf same wait?sometimes  # why\ng none -launch since=2.1 until=2.3\n"
    found = {fact.name: fact for fact in parse(text)}
    assert set(found) == {"a.f", "b.f", "a.g", "b.g"}
    assert found["a.f"].wait_condition == "sometimes"
    assert found["a.f"].effects == {"launch", "wait"}
    assert found["b.g"].effects == frozenset()
    assert [found["a.g"].holds(version) for version in ((2, 0), (2, 1), (2, 2), (2, 3))] == [False, True, True, False]
    assert found["a.g"].holds(None) is False


@functools.lru_cache(maxsize=1)
def _tensor_methods() -> frozenset[str]:
    torch = pytest.importorskip("torch")
    return frozenset(name for name in dir(torch.Tensor) if not name.startswith("_"))


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_dtype_and_rank_of_facts_hold() -> None:
    """Call the unary methods on a small tensor and compare what comes back with the table."""
    torch = pytest.importorskip("torch")
    x = torch.rand(3, 4) * 0.5 + 0.25
    checked = 0
    for name in sorted(_tensor_methods()):
        fact = lookup(f"torch.Tensor.{name}")
        if fact is None or fact.in_place or name.endswith("_"):
            continue
        try:
            result = getattr(x, name)()
        except (TypeError, RuntimeError, ValueError, IndexError, NotImplementedError, AssertionError):
            continue
        rule = fact.result.rule
        if rule in ("same", "like", "cast", "reduce", "extreme", "host", "move") and isinstance(result, torch.Tensor):
            expected = fact.result.dtype
            if expected is None and rule in ("same", "reduce", "extreme", "host", "move"):
                expected = DTypeClass.FLOAT
            kind = (
                DTypeClass.BOOL
                if result.dtype is torch.bool
                else DTypeClass.FLOAT
                if result.is_floating_point()
                else DTypeClass.INT
            )
            if expected is not None:
                assert kind is expected, name
            if fact.result.rank is not None:
                assert result.dim() == fact.result.rank, name
            elif rule == "same":
                assert result.dim() == 2, name
            elif rule in ("reduce", "extreme"):
                assert result.dim() == 0, name
            checked += 1
        elif rule.startswith("scalar") and rule != "scalars":
            assert isinstance(result, (int, float, bool)), name
    assert checked > 100
