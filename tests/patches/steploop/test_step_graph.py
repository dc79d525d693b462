"""The helper that the step-loop patch writes, with a replay that runs the step again in the place of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch.utils._pytree import tree_flatten, tree_unflatten  # noqa: E402

from awp_lint.patches.steploop import step_graph  # noqa: E402
from awp_lint.patches.steploop.step_graph import at, in_step, run_step  # noqa: E402


@pytest.fixture(autouse=True)
def no_grad() -> Iterator[None]:
    with torch.inference_mode():
        yield


class Captures:
    """Counts captures; a replay runs the step anew into the same results."""

    def __init__(self) -> None:
        self.count = 0
        self.fails = False

    def __call__(self, run: Any) -> Any:
        if self.fails:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.count += 1
        kept, spec = tree_flatten(run())

        def replay() -> None:
            for old, new in zip(kept, tree_flatten(run())[0], strict=True):
                if isinstance(old, torch.Tensor):
                    old.copy_(new)

        return replay, tree_unflatten(kept, spec)


@pytest.fixture
def captures(monkeypatch: pytest.MonkeyPatch) -> Captures:
    fake = Captures()
    monkeypatch.setattr(step_graph, "record", fake)
    monkeypatch.setattr(step_graph, "_has_cuda", lambda: True)
    monkeypatch.setattr(step_graph, "_usable", lambda leaves: not in_step())
    return fake


class Shift(torch.nn.Module):  # type: ignore[misc]
    """Adds a position, which it notes with its type."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[type] = []

    def forward(self, x: Any, position: Any) -> Any:
        self.seen.append(type(position))
        return x + position


def test_without_a_device_the_step_is_called_with_plain_numbers() -> None:
    model = Shift()
    assert run_step(model, torch.ones(2), at(3)).tolist() == [4.0, 4.0]
    assert model.seen == [int]


def test_numbers_are_tensors_in_a_captured_step_and_results_are_copies(captures: Captures) -> None:
    model = Shift()
    results = [run_step(model, torch.full((2,), float(i)), at(10 * i)) for i in range(6)]
    assert [r.tolist() for r in results] == [[11.0 * i] * 2 for i in range(6)]
    assert captures.count == 1 and set(model.seen) == {torch.Tensor}


def test_another_shape_or_type_is_captured_on_its_own(captures: Captures) -> None:
    model = Shift()
    for _ in range(4):
        assert run_step(model, torch.ones(2), at(1)).tolist() == [2.0, 2.0]
        assert run_step(model, torch.ones(3), at(1)).tolist() == [2.0, 2.0, 2.0]
        assert run_step(model, torch.ones(2, dtype=torch.float64), at(1)).dtype == torch.float64
    assert captures.count == 3


def test_a_shape_that_comes_once_is_not_captured(captures: Captures) -> None:
    model = Shift()
    for length in range(1, 6):
        assert run_step(model, torch.ones(length), at(1)).tolist() == [2.0] * length
    assert captures.count == 0


def test_a_failed_capture_falls_back_for_good(captures: Captures, caplog: pytest.LogCaptureFixture) -> None:
    captures.fails = True
    model = Shift()
    assert [run_step(model, torch.ones(1), at(i)).item() for i in range(6)] == [1.0 + i for i in range(6)]
    assert [r.message for r in caplog.records] == [
        "the step is not captured, it runs as before: operation not permitted when stream is capturing"
    ]
    assert model.seen[-1] is int


class Cache:
    """A buffer that steps write into."""

    def __init__(self) -> None:
        self.kept = torch.zeros(4)


class Writes(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any, position: Any, cache: Cache) -> Any:
        cache.kept.index_copy_(0, position + torch.arange(1), x)
        return cache.kept * 1


def test_caches_are_known_by_their_addresses(captures: Captures) -> None:
    model = Writes()
    first, second = Cache(), Cache()
    for cache in (first, second):
        for i in range(4):
            run_step(model, torch.full((1,), float(i)), at(i), cache)
        assert cache.kept.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert captures.count == 2
    second.kept = torch.zeros(4)  # replaced: its graph would go on writing to the old place
    run_step(model, torch.ones(1), at(2), second)
    assert second.kept.tolist() == [0.0, 0.0, 1.0, 0.0]


class Holder:
    def __init__(self, x: Any) -> None:
        self.x = x


def test_results_whose_tensors_are_hidden_are_not_captured(captures: Captures) -> None:
    model = torch.nn.Module()
    model.forward = lambda x: Holder(x + 1)
    results = [run_step(model, torch.full((1,), float(i))) for i in range(5)]
    assert [r.x.item() for r in results] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_nested_results_keep_their_form(captures: Captures) -> None:
    model = torch.nn.Module()
    model.forward = lambda x, state: (x + 1, {"n": [state["n"][0] + x], "flag": True})
    state: Any = {"n": [torch.zeros(1)], "flag": False}
    for _ in range(5):
        y, state = run_step(model, torch.ones(1), state)
    assert y.tolist() == [2.0] and state["n"][0].tolist() == [5.0] and state["flag"] is True


def test_old_graphs_are_dropped(captures: Captures, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_graph, "MOST_GRAPHS", 2)
    model = Shift()
    for length in (1, 2, 3, 1):
        for _ in range(3):
            run_step(model, torch.ones(length), at(0))
    assert captures.count == 4


def test_methods_have_graphs_of_their_own(captures: Captures) -> None:
    model = Shift()
    for _ in range(3):
        assert run_step(model, torch.ones(1), at(1)).item() == 2.0
        assert run_step(model.forward, torch.ones(1), at(2)).item() == 3.0
    assert captures.count == 2
