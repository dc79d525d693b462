"""Each wrong patch is caught, and by what is wrong with it; the right ones pass; the program is left as it was."""

from __future__ import annotations

import queue
import random
import threading
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pairs import RIGHT, WRONG, Cache, Case  # noqa: E402

from awp_lint.detector.verification.agent.device import Device  # noqa: E402
from awp_lint.detector.verification.agent.shadow import Allowed, compare  # noqa: E402


def test_there_are_25_of_each() -> None:
    assert len({case.name for case in WRONG}) >= 25
    assert len({case.name for case in RIGHT}) >= 25


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_a_wrong_patch_is_caught_by_name(case: Case) -> None:
    torch.manual_seed(1)
    found = compare(case.original, case.patched, case.inputs(), {}, allowed=case.allowed)
    assert not found.unknown
    assert case.kind in [difference.kind for difference in found.found]


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.name)
def test_a_right_patch_passes(case: Case) -> None:
    torch.manual_seed(1)
    found = compare(case.original, case.patched, case.inputs(), {}, allowed=case.allowed)
    assert (found.found, found.unknown) == ([], "")


class _Lagging(Device):
    """A device whose copies to the host arrive only when somebody waits."""

    def __init__(self) -> None:
        self.pending: list[tuple[Any, Any]] = []
        self.late = False

    def copy(self, source: Any) -> Any:
        """As ``to("cpu", non_blocking=True)``."""
        host = torch.full_like(source, 127)
        if self.late:
            self.pending.append((host, source))
        else:
            host.copy_(source)
        return host

    def settle(self) -> None:
        for host, source in self.pending:
            host.copy_(source)
        self.pending.clear()
        self.late = False

    def delay(self, like: list[Any]) -> None:
        self.late = True


def test_a_read_before_the_copy_has_arrived_is_caught() -> None:
    device = _Lagging()

    def waits(x: Any) -> Any:
        host = device.copy(x)
        device.settle()
        return host

    found = compare(waits, device.copy, (torch.ones(3),), {}, device=device)
    assert [d.kind for d in found.found] == ["stale"]
    assert compare(waits, waits, (torch.ones(3),), {}, device=device).found == []


def test_a_stale_value_used_inside_is_caught() -> None:
    device = _Lagging()

    def waits(x: Any) -> float:
        host = device.copy(x)
        device.settle()
        return float(host.sum())

    found = compare(waits, lambda x: float(device.copy(x).sum()), (torch.ones(3),), {}, device=device)
    assert [d.kind for d in found.found] == ["value"]


def test_the_programs_state_is_untouched() -> None:
    cache, row = Cache(), torch.ones(8)
    states = random.getstate(), torch.get_rng_state()

    def draws(cache: Cache, row: Any) -> Any:
        random.random()
        return cache.update(row + torch.rand(8))

    assert compare(draws, draws, (cache, row), {}).found == []
    assert cache.length == 1
    assert float(cache.keys.sum()) == 0.0
    assert random.getstate() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])


def test_a_trial_call_writes_no_file_and_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "log.txt"

    def writes(x: Any) -> Any:
        target.write_text("called")
        return x

    def prints(x: Any) -> Any:
        print("called")
        return x

    assert "open" in compare(writes, writes, (torch.ones(1),), {}).unknown
    assert not target.exists()
    found = compare(lambda x: x, writes, (torch.ones(1),), {})
    assert [d.kind for d in found.found] == ["type"]
    assert compare(prints, prints, (torch.ones(1),), {}).found == []
    assert capsys.readouterr().out == ""
    prints(1)
    assert capsys.readouterr().out == "called\n"


def test_queues_are_written_to_in_a_copy() -> None:
    out: queue.SimpleQueue[int] = queue.SimpleQueue()

    def streams(out: Any, x: Any) -> None:
        for value in x.tolist():
            out.put(value)

    def streams_less(out: Any, x: Any) -> None:
        for value in x.tolist()[:-1]:
            out.put(value)

    x = torch.arange(3)
    assert compare(streams, streams, (out, x), {}, ("out", "x")).found == []
    found = compare(streams, streams_less, (out, x), {}, ("out", "x"))
    assert [(d.kind, d.where) for d in found.found] == [("mutation", "out")]
    assert out.empty()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (threading.Thread(), "threading.Thread"),
        ((n for n in range(3)), "running generator"),
        (open("/dev/null"), "_io"),  # noqa: SIM115
    ],
    ids=["thread", "generator", "file"],
)
def test_what_cannot_be_copied_is_named(value: Any, words: str) -> None:
    found = compare(lambda v: v, lambda v: v, (value,), {})
    assert not found.found
    assert words in found.unknown


def test_views_of_one_storage_stay_views_of_one() -> None:
    base = torch.zeros(4)

    def writes(a: Any, b: Any) -> Any:
        a.add_(1)
        return b.sum()

    assert compare(writes, writes, (base[:2], base), {}).found == []
    found = compare(writes, lambda a, b: (a.add_(1), b.sum() * 0 + 1)[1], (base[:2], base), {})
    assert [d.kind for d in found.found] == ["value"]
    assert float(base.sum()) == 0.0


def test_numbers_that_equal_code_does_not_repeat_are_no_results() -> None:
    ticks = iter(range(1000))

    class Stats:
        seconds = 0.0

    def timed(stats: Any, x: Any) -> Any:
        stats.seconds = 1.0 + next(ticks)
        return x * 2

    assert compare(timed, timed, (Stats(), torch.ones(2)), {}).found == []


def test_rounding_is_judged_against_higher_precision() -> None:
    x, w = torch.randn(64, 256), torch.randn(256, 64)

    def product(x: Any, w: Any) -> Any:
        return x @ w

    def split(x: Any, w: Any) -> Any:
        return x[:, :128] @ w[:128] + x[:, 128:] @ w[128:]

    inputs = (x.bfloat16(), w.bfloat16())
    assert compare(product, split, inputs, {}, allowed=Allowed(numerics=True)).found == []
    assert compare(product, split, inputs, {}).found != []


def test_two_runs_may_be_equal_by_chance() -> None:
    given = iter([4, 4, 9])  # the original, once more, and once the patched version has differed

    def original(x: int) -> int:
        return next(given)

    found = compare(original, lambda x: 13, (1,), {})
    assert (found.found, found.unknown) == ([], "its own results change from run to run")
    assert [d.kind for d in compare(lambda x: 4, lambda x: 13, (1,), {}).found] == ["value"]
