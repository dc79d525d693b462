"""How work is cut into chunks, and that all of it is done."""

from __future__ import annotations

import os
import random

import pytest

from awp_lint.detector.project.workers import _chunks, each

Item = tuple[str, int]


def chunks(items: list[Item], count: int) -> list[list[int]]:
    return _chunks(items, count, lambda item: item[1], lambda item: item[0])


@pytest.mark.parametrize("count", [1, 2, 7, 24])
def test_every_item_is_in_one_chunk_and_chunks_are_even(count: int) -> None:
    chance = random.Random(count)
    items = [(f"folder{chance.randrange(30)}", chance.randrange(1, 100)) for _ in range(400)]
    found = chunks(items, count)
    assert sorted(index for chunk in found for index in chunk) == list(range(400))
    sizes = [sum(items[index][1] for index in chunk) for chunk in found]
    assert len(found) == count and sizes == sorted(sizes, reverse=True)
    assert max(sizes) <= 2 * sum(sizes) / count + 100


def test_groups_stay_together_unless_they_are_too_large() -> None:
    items = [(name, 10) for name in "abcabcabc"] + [("large", 30)] * 6
    found = chunks(items, 4)
    homes = {name: {n for n, chunk in enumerate(found) for i in chunk if items[i][0] == name} for name in "abc"}
    assert all(len(places) == 1 for places in homes.values())
    assert len({n for n, chunk in enumerate(found) for i in chunk if items[i][0] == "large"}) > 1


def test_nothing_and_things_of_no_size() -> None:
    assert chunks([], 3) == []
    found = chunks([("a", 0), ("b", 0), ("a", 0)], 2)
    assert sorted(index for chunk in found for index in chunk) == [0, 1, 2]


def test_results_come_with_their_index() -> None:
    items = list(range(40))
    found = each(_square, items, 2, _nothing, (), lambda item: item, lambda item: str(item % 3))
    assert sorted(found) == [(n, n * n) for n in items]


def test_no_more_processes_than_asked_for() -> None:
    found = dict(each(_process, list(range(60)), 3, _nothing, (), lambda item: 1, str))
    assert len(found) == 60 and len(set(found.values())) <= 3


def test_a_fault_ends_the_work() -> None:
    with pytest.raises(ZeroDivisionError):
        list(each(_broken, list(range(60)), 2, _nothing, (), lambda item: 1, str))


def _process(number: int) -> int:
    return os.getpid()


def _broken(number: int) -> float:
    return 1 / (number - 31)


def _square(number: int) -> int:
    return number * number


def _nothing() -> None:
    return
