"""Caches in buffers: what they give is what concatenation gives, in a step and out of it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import torch.nn.functional as F  # noqa: E402

from awp_lint.patches.steploop import step_cache, step_graph  # noqa: E402
from awp_lint.patches.steploop.step_cache import attend, grow, length_of  # noqa: E402


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(step_cache, "_unused", {})
    monkeypatch.setattr(step_cache, "_made", {})
    monkeypatch.setattr(step_cache, "ROOM", 8)
    with torch.inference_mode():
        yield


class Cache:
    """Keys as programs hold them."""

    def __init__(self, length: int) -> None:
        torch.manual_seed(length)
        self.keys = torch.randn(1, 2, length, 4)


def _run(cache: Cache, function: Any) -> Any:
    """Run a function as the warm-up of a step does, with a cache that was handed to it."""
    leaves, spec = step_graph.tree_flatten(((cache,), {}))
    return step_graph._run(lambda given: function(), leaves, spec)


def test_outside_of_a_step_it_is_concatenation() -> None:
    old, new = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 1, 4)
    assert torch.equal(grow(old, new, 2), torch.cat([old, new], dim=2))
    assert length_of(old, 2) == 3
    query = torch.randn(1, 2, 1, 4)
    assert torch.equal(attend(query, old, old), F.scaled_dot_product_attention(query, old, old))


def test_in_a_step_the_buffer_shows_what_concatenation_shows() -> None:
    cache = Cache(3)
    plain = cache.keys.clone()
    for step in range(12):  # past the room of the first buffer
        new, query = torch.randn(1, 2, 1, 4), torch.randn(1, 2, 1, 4)

        def body(new: Any = new, query: Any = query) -> Any:
            before = length_of(cache.keys, 2)
            cache.keys = grow(cache.keys, new, dim=2)
            return int(before), attend(query, cache.keys, cache.keys)

        before, context = _run(cache, body)
        plain = torch.cat([plain, new], dim=2)
        assert before == 3 + step and length_of(cache.keys, 2) == 4 + step
        torch.testing.assert_close(context, F.scaled_dot_product_attention(query, plain, plain))
    assert torch.equal(cache.keys.narrow(2, 0, 15), plain)
    assert torch.equal(grow(cache.keys, new, 2), torch.cat([plain, new], dim=2))  # back outside


def test_a_cache_made_in_the_step_stays_plain() -> None:
    outer, inner = Cache(3), Cache(2)
    new = torch.randn(1, 2, 1, 4)
    grown = _run(outer, lambda: grow(inner.keys, new, 2))
    assert grown.shape[2] == 3 and not hasattr(grown, "step_buffer")


def test_the_buffer_of_a_cache_that_is_gone_serves_the_next() -> None:
    places = []
    for length in (3, 4):
        cache = Cache(length)
        cache.keys = _run(cache, lambda cache=cache: grow(cache.keys, torch.ones(1, 2, 1, 4), 2))
        places.append(cache.keys.data_ptr())
        assert length_of(cache.keys, 2) == length + 1
        del cache
        gc.collect()
    assert places[0] == places[1]


def test_two_caches_at_once_have_buffers_of_their_own() -> None:
    first, second = Cache(3), Cache(3)
    for cache in (first, second):
        cache.keys = _run(cache, lambda cache=cache: grow(cache.keys, torch.ones(1, 2, 1, 4), 2))
    assert first.keys.data_ptr() != second.keys.data_ptr()


def test_more_than_one_position_at_once_is_no_step() -> None:
    cache = Cache(3)
    cache.keys = _run(cache, lambda: grow(cache.keys, torch.ones(1, 2, 1, 4), 2))
    with pytest.raises(RuntimeError, match="more than one"):
        _run(cache, lambda: attend(torch.randn(1, 2, 2, 4), cache.keys, cache.keys, is_causal=True))
