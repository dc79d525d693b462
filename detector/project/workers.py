"""Work on many files in several processes; results never depend on how many."""

from __future__ import annotations

import heapq
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_CHUNKS_A_WORKER = 12  # enough to even out, few enough to be cheap
_ALONE = 12  # fewer items are not worth a second process


def jobs_or_cores(jobs: int) -> int:
    """The number of processes: as asked, or one a core that this process may use."""
    if jobs > 0:
        return jobs
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def each(
    function: Callable[[T], R],
    items: Sequence[T],
    jobs: int,
    prepare: Callable[..., None],
    state: tuple[object, ...],
    size: Callable[[T], int],
    group: Callable[[T], str],
) -> Iterator[tuple[int, R]]:
    """Pairs (index, result) of every item, as they come. ``prepare(*state)`` runs first in each process.

    Items of one ``group`` go to the same process where that leaves the work even: they ask for the same things. This
    process works, too: it takes what no other has begun, from the end. On Linux the others are forked, so that
    ``state`` is shared and not copied.
    """
    jobs = min(jobs_or_cores(jobs), max(1, len(items) // _ALONE))
    if jobs <= 1:
        prepare(*state)
        for index, item in enumerate(items):
            yield index, function(item)
        return
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    chunks = _chunks(items, jobs * _CHUNKS_A_WORKER, size, group)
    if sys.platform == "linux":
        _forked.update(prepare=prepare, state=state, function=function)
        arguments: tuple[object, ...] = ()
        initializer: Callable[..., None] = _prepare_forked
    else:
        arguments = (prepare, state, function)
        initializer = _prepare_spawned
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside the progress bar's thread
        with ProcessPoolExecutor(jobs - 1, context, initializer, arguments) as pool:
            waiting = [(pool.submit(_run, [(index, items[index]) for index in chunk]), chunk) for chunk in chunks]
            try:
                prepare(*state)
                while waiting and waiting[-1][0].cancel():
                    for index in waiting.pop()[1]:
                        yield index, function(items[index])
                    ready = {future for future, _ in waiting if future.done()}
                    waiting = [pair for pair in waiting if pair[0] not in ready]
                    for future in ready:
                        yield from future.result()
                for future in as_completed([future for future, _ in waiting]):
                    yield from future.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


_forked: dict[str, object] = {}
_function: list[Callable[[Any], Any]] = []


def _prepare_forked() -> None:
    _prepare_spawned(_forked["prepare"], _forked["state"], _forked["function"])  # type: ignore[arg-type]


def _prepare_spawned(prepare: Callable[..., None], state: tuple[object, ...], function: Callable[[Any], Any]) -> None:
    prepare(*state)
    _function[:] = [function]


def _run(items: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    return [(index, _function[0](item)) for index, item in items]


def _chunks(items: Sequence[T], count: int, size: Callable[[T], int], group: Callable[[T], str]) -> list[list[int]]:
    """Indexes in chunks of about equal size, the largest chunk first. A group that is too large for one is cut."""
    sizes = [size(item) for item in items]
    most = sum(sizes) / max(1, count)
    pieces: dict[tuple[str, int], list[int]] = {}
    filled: dict[str, float] = {}
    for index, item in enumerate(items):
        name = group(item)
        before = filled.get(name, 0)
        pieces.setdefault((name, int(before // most) if most else 0), []).append(index)
        filled[name] = before + sizes[index]
    weighed = sorted(((sum(sizes[i] for i in piece), piece) for piece in pieces.values()), key=lambda one: -one[0])
    chunks: list[tuple[int, int, list[int]]] = [(0, number, []) for number in range(max(1, min(count, len(weighed))))]
    for weight, piece in weighed:
        least, number, chunk = heapq.heappop(chunks)
        heapq.heappush(chunks, (least + weight, number, [*chunk, *piece]))
    return [chunk for _, _, chunk in sorted(chunks, key=lambda one: (-one[0], one[1])) if chunk]
