"""Who serves requests though nobody calls it, and which methods of lists are a class's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Frequency = Callable[[str, str], "str | None"]


@pytest.fixture
def runs(link: Any) -> Frequency:
    """How often a function of a text runs, as its path; None where that is not known."""

    def ask(source: str, name: str) -> str | None:
        linked = link({"lib/code.py": source})
        found = linked.frequencies.reach[linked.index.by_function[f"lib.code.{name}"]]
        return None if found is None else "×".join(level.value for level in found.path)

    return ask


LOOP = """
    import torch

    class Composer:
        {mode}
        def {name}(self, ids, length):
            for k in range({count}):
                ids = self.next(ids)
            return ids

        def next(self, ids):
            return ids
"""


@pytest.mark.parametrize(
    ("mode", "name", "count", "expected"),
    [
        ("@torch.inference_mode()", "compose", "max_new_tokens", "request"),
        ("@torch.inference_mode()", "compose", "length", "request"),
        ("@torch.no_grad()", "compose", "max_new_tokens", "request"),
        ("@torch.no_grad()", "invert", "num_inference_steps", "request"),
        ("@torch.no_grad()", "compose", "length", None),  # weights are changed without gradients, too
        ("", "compose", "max_new_tokens", None),
        ("@torch.inference_mode()", "_compose", "max_new_tokens", None),
        ("@torch.inference_mode()", "update_weights", "max_new_tokens", None),
        ("@torch.inference_mode()", "evaluate", "max_new_tokens", None),
        ("@torch.inference_mode()", "quantize", "num_inference_steps", None),
        ("@torch.inference_mode()", "follow_in_video", "num_inference_steps", None),
        ("@torch.inference_mode()", "test_compose", "max_new_tokens", None),
        ("", "generate_token", "length", "request×token"),  # a server asks for one more
        ("", "model_forward", "length", "request×step"),
    ],
)
def test_what_says_that_it_is_there_for_inference(
    runs: Frequency, mode: str, name: str, count: str, expected: str | None
) -> None:
    assert runs(LOOP.format(mode=mode, name=name, count=count), f"Composer.{name}") == expected


def test_what_it_calls_runs_as_often_as_its_loop(runs: Frequency) -> None:
    code = LOOP.format(mode="@torch.inference_mode()", name="compose", count="max_new_tokens")
    assert runs(code, "Composer.next") == "request×token"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("self.extend(x)", "request×layer"),
        ("self.get(x, 1)", "request×layer"),
        ("x.extend(x)", None),  # of a list, or a tensor
        ("x.get(x, 1)", None),
    ],
)
def test_methods_that_are_called_as_those_of_lists(runs: Frequency, call: str, expected: str | None) -> None:
    code = f"""
        from torch import nn

        class CacheMixin:
            def extend(self, x):
                return x

            def get(self, x, other):
                return x

        class Attention(nn.Module, CacheMixin):
            def forward(self, x):
                return {call}
        """
    assert runs(code, f"CacheMixin.{'get' if 'get' in call else 'extend'}") == expected


def test_a_library_may_define_what_self_is_asked_for(runs: Frequency) -> None:
    code = """
        from torch import nn

        class Store:
            def extend(self, x):
                return x

        class Parts(nn.ModuleList):
            def forward(self, x):
                self.extend([x])
                return x
        """
    assert runs(code, "Store.extend") is None


DECORATED = """
    import functools
    from torch import nn

    def around(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            return function(*args, **kwargs)
        return inner

    def named(name):
        def wrap(function):
            @functools.wraps(function)
            def inner(*args, **kwargs):
                return function(*args, **kwargs)
            return inner
        return wrap

    def documented(text):
        def change(function):
            function.__doc__ = text
            return function
        return change

    class Attention(nn.Module):
        @{decorator}
        def forward(self, x):
            return x
"""


@pytest.mark.parametrize(
    ("decorator", "name", "expected"),
    [
        ("around", "around.inner", "request×layer"),
        ("named('a')", "named.wrap.inner", "request×layer"),
        ("named('a')", "around.inner", None),
        ("documented('a')", "documented.change", None),
    ],
)
def test_what_decorators_put_around_a_function(
    runs: Frequency, decorator: str, name: str, expected: str | None
) -> None:
    assert runs(DECORATED.format(decorator=decorator), name) == expected
