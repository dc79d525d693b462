"""What authors say in comments and docstrings takes a finding back, and what is no such word does not."""

from __future__ import annotations

import textwrap

import pytest

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules

LAYER = """
    import torch

    class Attention(torch.nn.Module):
        {summary}

        def forward(self, hidden_states: torch.Tensor, bound: int = 0) -> torch.Tensor:
            # {above}
            if bound >= 0:
                last = bound
            else:
                # {inside}
                last = hidden_states.max().item()
            return hidden_states[:last]
"""


def levels(code: str, rule: str = "AWP101") -> set[str]:
    view = view_of_source(textwrap.dedent(code), path="code.py")
    return {f.confidence.value for f in run_rules(view, all_rules()).findings if f.rule == rule}


def layer(summary: str = '"""Attention."""', above: str = "the bound", inside: str = "the length") -> str:
    return LAYER.format(summary=summary, above=above, inside=inside)


def test_a_plain_branch() -> None:
    assert levels(layer()) == {"medium"}


@pytest.mark.parametrize(
    "words",
    [
        {"above": "-1 (unknown metadata) falls back to the check on the device."},
        {"inside": "Legacy metadata: fall back to the lengths. Unreached now."},
        {"summary": '"""Explicit fallback for platforms without the kernel."""'},
    ],
)
def test_a_branch_that_is_called_the_fallback(words: dict[str, str]) -> None:
    assert levels(layer(**words)) <= {"low"}


def test_a_branch_that_warns_of_the_fallback() -> None:
    code = layer().replace("# the length", 'logger.warning_once("No kernel. Falling back to the slow way.")')
    assert levels(code) <= {"low"}
    assert levels(code.replace("Falling back", "Going on")) == {"medium"}


def test_the_fallback_of_something_else() -> None:
    """The word in a later paragraph of a docstring says nothing of the whole."""
    assert levels(layer(summary='"""Attention.\n\n        There is a fallback elsewhere."""')) == {"medium"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ('"""Attention."""', {"medium"}),
        ('"""Debug tally over the layers of one pass."""', {"low"}),
        ('"""Attention that is easy to debug."""', {"medium"}),
    ],
)
def test_what_is_there_for_debugging(words: str, expected: set[str]) -> None:
    assert levels(layer(summary=words)) == expected


def test_a_comment_above_says_what_it_is_there_for() -> None:
    plain = layer().replace("def forward", "# Debug aid (ENGINE_CHECK): must equal the whole.\n        def forward")
    assert levels(plain) == {"low"}


TOLD = """
    import torch

    class Attention(torch.nn.Module):
        def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
            return shrink(hidden_states, hidden_states.sum(-1))

    def shrink(
        inputs: torch.Tensor,
        count: torch.Tensor,{comment}
    ) -> torch.Tensor:
        \"\"\"Shrink.

        Args:
            inputs (torch.Tensor): the input
            count (torch.Tensor): {described}
        \"\"\"
        return inputs[: int(count.item())]
"""


def test_a_parameter_that_is_said_to_be_on_the_host() -> None:
    assert levels(TOLD.format(comment="", described="how many")) == {"medium"}
    assert levels(TOLD.format(comment="  # CPU tensor [1]", described="how many")) <= {"low"}
    assert levels(TOLD.format(comment="", described="a CPU tensor of size 1, how many")) <= {"low"}
    assert levels(TOLD.format(comment="  # [1], how many", described="how many")) == {"medium"}


def test_a_wait_that_its_owner_allows() -> None:
    code = """
        import torch
        from engine import {opened}

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                with {opened}():
                    return hidden_states * hidden_states.max().item()
    """
    assert levels(code.format(opened="profiled")) == {"medium"}
    assert levels(code.format(opened="gpu_sync_allowed")) <= {"low"}


WEIGHED = """
    import torch

    class Attention(torch.nn.Module):
        def forward(self, hidden_states: torch.Tensor, keep: torch.Tensor, ragged: bool) -> torch.Tensor:
            last = 1
            if ragged:
                # {inside}
                count = hidden_states.shape[0]
                rows = hidden_states[keep > 0]
                last = count - rows.sum().item()
            return hidden_states * last
"""


@pytest.mark.parametrize(
    ("inside", "read", "shape"),
    [
        ("The lengths.", "medium", "medium"),
        ("Prefill is eager: that makes the D->H sync acceptable.", "low", "low"),
        ("A sync is unavoidable here.", "low", "low"),
        ("This diagnostic intentionally syncs to reject bad rows.", "low", "low"),
        ("The .item() below runs in the builder, outside the captured region.", "low", "medium"),
        ("TODO: the sync is not acceptable in serving.", "medium", "medium"),
        ("Kept in sync with the builder.", "medium", "medium"),
    ],
)
def test_a_wait_that_its_author_weighed(inside: str, read: str, shape: str) -> None:
    code = WEIGHED.format(inside=inside)
    assert levels(code) == {read}
    assert levels(code, "AWP105") == {shape}


def test_what_only_exported_models_give() -> None:
    code = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                flat = hidden_states.ndim == 2  # {words}
                if flat:
                    return hidden_states * hidden_states.max().item()
                return hidden_states
    """
    assert levels(code.format(words="one row")) == {"medium"}
    assert levels(code.format(words="exports with an argmax of their own")) <= {"low"}


def test_what_a_function_falls_back_to_without_an_argument() -> None:
    code = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
                return cut(hidden_states, attention_mask)

        def cut(inputs: torch.Tensor, attention_mask) -> torch.Tensor:
            \"\"\"Cut the padding.

            {words}
            \"\"\"
            if attention_mask is not None:
                return inputs[:, : attention_mask.shape[1]]
            return inputs[: int(inputs.sum().item())]
    """
    assert levels(code.format(words="Without rows it has a fallback.")) == {"medium"}
    assert levels(code.format(words="Without a mask, falls back to rows of zeros.")) <= {"low"}


def test_kernels_that_somebody_chose() -> None:
    code = """
        import torch
        from engine import {group}

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, backend: str) -> torch.Tensor:
                if backend in {group}:
                    return hidden_states * hidden_states.max().item()
                return hidden_states
    """
    assert levels(code.format(group="_BACKENDS")) == {"medium"}
    assert levels(code.format(group="_FLASH_ATTENTION_BACKENDS")) <= {"low"}


FORMS = '''
    import torch

    class DecoderLayer(torch.nn.Module):
        def forward(self, boxes: torch.Tensor, shapes: list) -> torch.Tensor:
            """Attend.

            Args:
                boxes (torch.Tensor): Boxes with shape ({said}).
                shapes (list): Shapes of the maps, [(height, width), ...].
            """
            return boxes

    class DeformableAttention(torch.nn.Module):
        def forward(self, boxes: torch.Tensor, shapes: list) -> torch.Tensor:
            size = boxes.shape[-1]
            if size == 2:
                boxes = boxes / torch.tensor(shapes, device=boxes.device)
            elif size == 4:
                boxes = boxes[..., :2] * boxes[..., 2:]
            return boxes
'''


@pytest.mark.parametrize(
    ("said", "shown"),
    [("bs, num_queries, 4", set()), ("bs, num_queries, 2", {"medium"}), ("bs, num_queries, 1, 2 or 4", {"medium"})],
)
def test_boxes_of_another_size_than_the_file_says(said: str, shown: set[str]) -> None:
    assert levels(FORMS.format(said=said), "AWP601") - {"low"} == shown


FLUSHES = """
    import torch

    class Mapper(torch.nn.Module):
        def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                # {comment}
                kept = None
                {flush}
                hidden_states = layer(hidden_states)
            return hidden_states
"""


@pytest.mark.parametrize(
    ("comment", "flush", "shown"),
    [
        ("the next layer", "torch.cuda.empty_cache()", {"medium"}),
        ("let go of it, to save peak memory for the next", "torch.cuda.empty_cache()", set()),
        ("against out of memory errors", "torch.cuda.empty_cache()", set()),
        ("the next layer", "if self.save_mem: torch.cuda.empty_cache()", set()),
        ("the next layer", "if self.low_vram: torch.cuda.empty_cache()", set()),
        ("the next layer", "if self.remembers: torch.cuda.empty_cache()", {"medium"}),
    ],
)
def test_flushes_that_somebody_wants(comment: str, flush: str, shown: set[str]) -> None:
    assert levels(FLUSHES.format(comment=comment, flush=flush), "AWP605") - {"low"} == shown
