"""Code from real libraries that a rewrite would have broken: there must be none, or one that leaves it right."""

from __future__ import annotations

import textwrap

import pytest

from awp_lint.detector.project.source import Source
from awp_lint.detector.semantics.model import view_of_source
from awp_lint.patches.plan import plan_file
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules

HEAD = """
import torch
from torch import nn


class Mixer(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

"""


def fixed(method: str) -> str:
    """The method with all fixes, behind the head of a class."""
    code = HEAD + textwrap.indent(textwrap.dedent(method).strip("\n"), "    ") + "\n"
    findings = run_rules(view_of_source(code, path="code.py"), all_rules()).findings
    wanted = [f for f in findings if f.rule != "AWP701" and f.fix is not None and f.fix.edits]
    return plan_file(Source.decode("code.py", code.encode()), wanted).after.removeprefix(HEAD)


@pytest.mark.parametrize(
    "method",
    [
        # the name may hold a Python bool, and the cache may be missing
        """
        def forward(self, hidden_states: torch.Tensor, cache=None, position: torch.Tensor = None):
            precomputed = cache is not None and position[0] > 0
            for layer in self.layers:
                if precomputed:
                    previous = cache.states[:, None]
                else:
                    previous = torch.zeros_like(hidden_states[:, :1])
                hidden_states = hidden_states + previous
            return hidden_states
        """,
        # read only where there is something to read
        """
        def forward(self, hidden_states: torch.Tensor, cache=None, position: torch.Tensor = None):
            for layer in self.layers:
                if cache is not None and position[0] > 0:
                    hidden_states = layer(hidden_states)
                if cache is not None and position[0] > 1:
                    hidden_states = layer(hidden_states)
            return hidden_states
        """,
        # two lengths
        """
        def forward(self, hidden_states: torch.Tensor, ids: torch.Tensor, first: int):
            for layer in self.layers:
                hidden_states = layer(hidden_states)
                ids = ids[1:] if ids[0] == first else ids
            return hidden_states, ids
        """,
        # a flag, not a tensor that may be missing
        """
        def forward(self, hidden_states: torch.Tensor, router_logits=None):
            for layer in self.layers:
                hidden_states = layer(hidden_states)
                if router_logits:
                    hidden_states = hidden_states * 2
            return hidden_states
        """,
        # each layer has a state of its own
        """
        def forward(self, hidden_states: torch.Tensor, batch_size: int, dim: int):
            states = []
            for layer in self.layers:
                states += [torch.zeros(batch_size, dim, device=hidden_states.device)]
                hidden_states = layer(hidden_states)
            return hidden_states, states
        """,
    ],
)
def test_left_alone(method: str) -> None:
    assert fixed(method) == textwrap.indent(textwrap.dedent(method).strip("\n"), "    ") + "\n"


def test_an_empty_tensor_that_is_kept_is_not_shared() -> None:
    method = """
    def forward(self, hidden_states: torch.Tensor):
        caches = []
        for layer in self.layers:
            caches.append(torch.tensor([1, 2], device=hidden_states.device))
            hidden_states = layer(hidden_states)
        return hidden_states, caches
    """
    assert "functools" not in fixed(method) and "_on(" not in fixed(method)


def test_a_number_made_of_two_is_read_once() -> None:
    method = """
    def forward(self, hidden_states: torch.Tensor, sizes: torch.Tensor):
        for layer in self.layers:
            height = sizes.sum() // 2
            width = sizes.amax() // 2
            area = height * width
            hidden_states = hidden_states[: height, : width].reshape(height * width, -1)[:area]
            hidden_states = hidden_states.narrow(0, 0, area).narrow(0, 0, height).narrow(0, 0, width)
        return hidden_states
    """
    after = fixed(method)
    assert "(height * width).item()" not in after, "the parts are numbers by then"
