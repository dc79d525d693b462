"""Code that runs in the first step of a request only does not count as often as the steps do."""

from __future__ import annotations

import ast

import pytest

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.detector.semantics.once import first_step


@pytest.mark.parametrize(
    ("test", "taken", "expected"),
    [
        ("pixel_values is not None", True, True),
        ("pixel_values is not None", False, False),
        ("pixel_values is None", False, True),
        ("past_key_values is None", True, True),
        ('outputs.get("image") is not None', True, True),
        ('outputs.get("text") is not None', True, False),
        ("audio_prompt_latents is not None", True, True),
        ("past_key_values is not None", True, False),
        ("self.step_index is None", True, True),
        ("input_features is not None and use_audio", True, True),
        ("use_audio or past_key_values is None", True, False),
        ("attention_mask is not None", True, False),
        ("hidden_states is None", True, False),
        ("order == 1", True, True),
        ("order == 1", False, False),
        ("order == 2", True, False),
    ],
)
def test_tests_of_the_prompt(test: str, taken: bool, expected: bool) -> None:
    assert first_step(ast.parse(test, mode="eval").body, taken) is expected


SOURCE = """
import torch
from torch import nn


class Scheduler:
    def __init__(self):
        self.step_index = None

    def _init_step_index(self, t):
        return look_up(t)

    def step(self, noise, t):
        if self.step_index is None:
            self._init_step_index(t)
        return move(noise)


class Pipeline:
    def __init__(self, unet: nn.Module):
        self.unet = unet
        self.scheduler = Scheduler()

    def __call__(self, latents: torch.Tensor, timesteps):
        for t in timesteps:
            latents = self.scheduler.step(self.unet(latents, t), t)
        return latents
"""


def test_through_a_call() -> None:
    found = {}
    for view in view_of_source(SOURCE).functions():
        for call in view.nodes(ast.Call):
            assert isinstance(call, ast.Call)
            found[ast.unparse(call.func)] = str(view.frequency(call))
    assert found["move"] == "request×step"
    assert found["look_up"] == "request"


GENERATION = """
from transformers import GenerationMixin, PreTrainedModel


class Model(PreTrainedModel, GenerationMixin):
    def forward(self, input_ids, pixel_values=None, outputs=None):
        images = self.get_image_features(outputs)
        return embed(input_ids) + images

    def get_image_features(self, outputs):
        return encode(outputs)
"""


def test_by_the_name_of_what_is_asked_about_a_prompt() -> None:
    found = {}
    for view in view_of_source(GENERATION).functions():
        for call in view.nodes(ast.Call):
            assert isinstance(call, ast.Call)
            found[ast.unparse(call.func)] = str(view.frequency(call))
    assert found["embed"] == "request×token"
    assert found["encode"] == "request"
