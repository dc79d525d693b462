"""Devices that conditions and call sites choose, and operands that tell where the other one is."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

import pytest

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.detector.semantics.values import Certainty, Device, Value


def _value(source: str, function: str, name: str, path: str = "pkg/a.py") -> Value:
    """What the last load of a name in a function holds."""
    view = next(v for v in view_of_source(textwrap.dedent(source), path).functions() if v.qualname == function)
    loads = [n for n in view.nodes(ast.Name) if isinstance(n, ast.Name) and n.id == name]
    return view.value([n for n in loads if isinstance(n.ctx, ast.Load)][-1])


CHOSEN = """
    import torch

    def place(config, group):
        device = group.device
        if config.{flag}:
            device = {host}
        return device, group

    def run(n, config, group):
        device, group = place(config, group)
        return torch.zeros(4, n, device=device)

    def step(n, config, group):
        counts = run(n, config, group)
        return read(counts)

    def read(counts: torch.Tensor):
        return counts.tolist()
    """


@pytest.mark.parametrize("host", ['"cpu"', 'torch.device("cpu")'])
def test_a_device_that_a_condition_puts_on_the_host_is_undecided(host: str) -> None:
    found = _value(CHOSEN.format(flag="without_nccl", host=host), "read", "counts")
    assert not found.on_device
    assert found.certainty is Certainty.UNKNOWN


def test_a_switch_that_names_devices_is_left_at_the_accelerator() -> None:
    assert _value(CHOSEN.format(flag="cpu", host='"cpu"'), "read", "counts").on_device
    assert _value(CHOSEN.format(flag="use_gpu_twin", host='"cpu"'), "read", "counts").on_device


def test_a_device_chosen_in_one_expression() -> None:
    source = """
        import torch

        def run(flag):
            a = torch.zeros(3, device="cpu" if flag else "cuda")
            b = torch.zeros(3, device="cuda" if torch.cuda.is_available() else "cpu")
            return a, b
        """
    assert not _value(source, "run", "a").on_device
    assert _value(source, "run", "b").on_device


HELPER = """
    import torch

    def padded(rows, device: str | torch.device | None = None):
        made = torch.from_numpy(rows).to(device)
        return made
    """


def test_a_device_parameter_for_which_all_pass_the_host_makes_host_tensors() -> None:
    called = HELPER + '\n    def step(rows):\n        return padded(rows, device="cpu")\n'
    assert _value(called, "padded", "made").device is Device.HOST


@pytest.mark.parametrize(
    "caller",
    ["", '\n    def step(rows, device):\n        return padded(rows, "cpu"), padded(rows, device)\n'],
)
def test_otherwise_they_are_where_the_model_is(caller: str) -> None:
    assert _value(HELPER + caller, "padded", "made").on_device


def test_calls_of_tests_tell_no_device(link: Any) -> None:
    linked = link({
        "lib/a.py": HELPER,
        "tests/test_a.py": "from lib.a import padded\n\ndef test_it():\n    padded([1], device='cpu')\n",
    })  # fmt: skip
    assert linked.parameter("lib.a.padded", "device") is None


def test_what_is_added_to_a_host_tensor_of_several_elements_is_on_the_host() -> None:
    source = """
        import torch

        def shift(timesteps: torch.Tensor, other: torch.Tensor):
            a = timesteps * torch.arange(3)
            b = other * torch.tensor(3)
            return a, b
        """
    assert _value(source, "shift", "a").device is Device.HOST
    assert _value(source, "shift", "b").on_device


@pytest.mark.parametrize(
    ("imported", "declared", "known"),
    [
        ("from pyannote.core import SlidingWindowFeature", "SlidingWindowFeature", False),
        ("import pyannote.core", "pyannote.core.SlidingWindowFeature", False),
        ("from typing import Any", "Any", True),
        ("from docarray.typing import TorchTensor", "TorchTensor", True),
        ("from pkg.types import Scores", "Scores", True),
    ],
)
def test_a_parameter_declared_as_an_object_of_another_library(imported: str, declared: str, known: bool) -> None:
    source = f"import torch\n{imported}\ndef binarize(scores: {declared}):\n    return scores\n"
    assert _value(source, "binarize", "scores").is_tensor is known
