"""What tests, defaults and calls say of switches."""

from __future__ import annotations

import ast
import textwrap

import pytest

from awp_lint.detector.semantics.conditions import held, passed_for, ruled_out, turns
from awp_lint.detector.semantics.model import view_of_source
from awp_lint.detector.semantics.switches import default_of, switch, switched_off
from awp_lint.detector.semantics.view import Level, Region
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules


def expression(code: str) -> ast.expr:
    return ast.parse(code, mode="eval").body


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("self.config.upcast", "self.config.upcast"),
        ("config.upcast", "config.upcast"),
        ("self.upcast", "self.upcast"),
        ("self.is_decoder", None),  # a part's role
        ("self.query_bias", "self.query_bias"),
        ("config.query_bias", None),  # checkpoints come with it
        ("self.config.num_layers", None),
        ("model.config.upcast", None),
        ("getattr(self.config, 'upcast', False)", "self.config.upcast|False"),
        ("getattr(self.config, 'upcast')", None),
    ],
)
def test_what_is_a_switch(code: str, name: str | None) -> None:
    assert switch(expression(code)) == name


@pytest.mark.parametrize(
    ("state", "default", "off"),
    [
        ("true", "False", True),
        ("true", "None", True),
        ("true", "True", False),
        ("true", "", False),
        ("false", "True", True),
        ("false", "False", False),
        ("given", "None", True),
        ("given", "3", False),
        ("none", "3", True),
        ("true", "()", True),
        ("none", "()", True),
        ("given", "()", False),
        ("=='sparse'", "'full'", True),
        ("=='full'", "'full'", False),
        ("!='full'", "'full'", True),
    ],
)
def test_what_a_default_rules_out(state: str, default: str, off: bool) -> None:
    assert switched_off(state, default) is off


def test_texts_of_defaults() -> None:
    assert [default_of(expression(code)) for code in ("None", "-1", "'full'", "[1]")] == ["None", "-1", "'full'", ""]


@pytest.mark.parametrize(
    ("code", "taken", "states"),
    [
        ("self.upcast and x.any()", True, (("self.upcast", "true"),)),
        ("self.config.limit is not None", False, (("self.config.limit", "none"),)),
        ("method == 'discrete'", True, (("method", "=='discrete'"),)),
        ("self.mode != 'full'", False, (("self.mode", "=='full'"),)),
        ("x.shape[0] == 'a'", True, ()),
    ],
)
def test_states_of_switches(code: str, taken: bool, states: tuple[tuple[str, str], ...]) -> None:
    assert held(expression(code), taken) == states


@pytest.mark.parametrize(
    ("header", "switch_and_state"),
    [
        ("for i in range(1, self.rounds):", (("self.rounds", ">1"),)),
        ("for i in range(self.rounds):", (("self.rounds", ">0"),)),
        ("for i in range(n, self.rounds):", None),
        ("for i in range(1, self.rounds, 2):", None),
        ("for i in range(self.num_layers):", None),
        ("while self.rounds:", None),
    ],
)
def test_what_must_hold_for_a_loop_to_be_entered(
    header: str, switch_and_state: tuple[tuple[str, str], ...] | None
) -> None:
    loop = ast.parse(f"{header}\n    pass").body[0]
    assert isinstance(loop, ast.For | ast.While)
    needed = turns(loop)
    assert (None if needed is None else held(needed, True)) == switch_and_state


def test_turns_that_a_default_leaves_out() -> None:
    code = """
        from torch import nn

        class ToyConfig:
            rounds: int = 1

        class Merger(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.rounds = config.rounds

            def forward(self, x):
                for i in range({first}, self.rounds):
                    here(x)
                return x
        """
    for first, fallback in ((0, False), (1, True)):
        file = view_of_source(textwrap.dedent(code.format(first=first)), path="toy.py")
        view = next(v for v in file.functions() if v.qualname == "Merger.forward")
        call = next(c for c in view.nodes(ast.Call) if ast.unparse(c) == "here(x)")
        assert bool(view.regions(call) & Region.FALLBACK) is fallback


@pytest.mark.parametrize(
    ("declared", "test", "runs"),
    [
        (": OwnScheduler", "not isinstance(self.scheduler, OwnScheduler)", False),
        (": OwnScheduler", "isinstance(self.scheduler, OwnScheduler)", True),
        (": OwnScheduler", "not isinstance(self.scheduler, OtherScheduler)", True),
        (": OwnScheduler | OtherScheduler", "not isinstance(self.scheduler, OwnScheduler)", True),
        ("", "not isinstance(self.scheduler, OwnScheduler)", True),
    ],
)
def test_another_class_than_the_constructor_declares(declared: str, test: str, runs: bool) -> None:
    code = f"""
        from diffusers import DiffusionPipeline

        class OwnScheduler: ...
        class OtherScheduler: ...

        class TextPipeline(DiffusionPipeline):
            def __init__(self, unet, scheduler{declared}):
                self.register_modules(unet=unet, scheduler=scheduler)

            def __call__(self, x, timesteps):
                for t in timesteps:
                    if {test}:
                        here(t)
                return x
        """
    file = view_of_source(textwrap.dedent(code), path="toy.py")
    view = next(v for v in file.functions() if v.qualname == "TextPipeline.__call__")
    call = next(c for c in view.nodes(ast.Call) if ast.unparse(c) == "here(t)")
    assert bool(view.regions(call) & Region.FALLBACK) is not runs


def test_a_keyword_says_more_than_what_is_unpacked_beside_it() -> None:
    assert passed_for(("=x", "mask=None", "**"), "mask", 3) == "None"
    assert passed_for(("=x", "**"), "mask", 3) == ""
    assert passed_for(("=x", "**"), "x", 0) == "=x"
    assert passed_for(("*", "=x"), "x", 1) == ""
    assert not ruled_out("=='a'", "const")


MODEL = """
    import torch
    from torch import nn
    from transformers import PreTrainedModel

    class ToyConfig:
        upcast: bool = False
        mode: str = "full"
        limit: int | None = None
        worked_out: int | None = None

        def __post_init__(self):
            self.worked_out = self.worked_out or 3

    class ToyAttention(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.config = config
            self.upcast = config.upcast
            self.changed = config.upcast
            self.asked = getattr(config, "upcast", True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if {asked}:
                return self.slow(x)
            return x

        def slow(self, x: torch.Tensor) -> torch.Tensor:
            return x * x.max().item()

        def change(self) -> None:
            self.changed = True
"""


@pytest.mark.parametrize(
    ("asked", "runs"),
    [
        ("self.upcast", False),
        ("self.config.upcast", False),
        ("not self.upcast", True),
        ("self.config.mode == 'sparse'", False),
        ("self.config.mode == 'full'", True),
        ("self.config.limit is not None", False),
        ("self.config.worked_out is not None", True),  # what the class works out is not its default
        ("self.config.unknown", True),
        ("self.changed", True),  # set elsewhere, too
        ("self.asked", False),
        ("getattr(self.config, 'upcast', True)", False),  # the configuration has the field
        ("getattr(self.config, 'unknown', False)", False),
        ("getattr(self.config, 'unknown', True)", True),
    ],
)
def test_what_is_off_by_default_is_not_reached(asked: str, runs: bool) -> None:
    file = view_of_source(textwrap.dedent(MODEL.format(asked=asked)), path="toy.py")
    slow = next(view for view in file.functions() if view.qualname == "ToyAttention.slow")
    assert slow.frequency(slow.node).known is runs
    found = [f for f in run_rules(file, all_rules()).findings if f.rule == "AWP101" and f.confidence.value != "low"]
    assert bool(found) is runs


OUTSIDE = """
    import torch
    from transformers import GenerationMixin, PreTrainedModel

    class ToyPreTrainedModel(PreTrainedModel):
        pass

    class ToyModel(ToyPreTrainedModel):
        def forward(self, input_ids=None, attention_mask=None, **kwargs):
            if attention_mask is None:
                self.examine(input_ids)
            return input_ids

        def examine(self, input_ids):
            return bool(input_ids.max() > 3)

    class ToyForCausalLM(ToyPreTrainedModel, GenerationMixin):
        def __init__(self, config):
            super().__init__(config)
            self.model = ToyModel(config)

        def forward(self, input_ids=None, attention_mask=None, labels=None, **kwargs):
            states = self.model(input_ids, attention_mask={passed}, **kwargs)
            if labels is not None:
                self.loss_of(states)
            return states

        def loss_of(self, states):
            return states.sum()
"""


@pytest.mark.parametrize(("passed", "runs"), [("attention_mask", False), ("None", True)])
def test_models_are_called_with_a_mask_and_without_labels(passed: str, runs: bool) -> None:
    file = view_of_source(textwrap.dedent(OUTSIDE.format(passed=passed)), path="toy.py")
    views = {view.qualname: view for view in file.functions()}
    assert views["ToyModel.examine"].frequency(views["ToyModel.examine"].node).known is runs
    assert not views["ToyForCausalLM.loss_of"].frequency(views["ToyForCausalLM.loss_of"].node).known


STEPS = """
    import torch
    from transformers import GenerationMixin, PreTrainedModel

    class ToyForCausalLM(PreTrainedModel, GenerationMixin):
        def forward(self, input_ids, pixel_values=None, cache=None):
            if self.table.size(0) < input_ids.shape[1]:
                self.make_table(input_ids.shape[1])
            if input_ids.shape[1] == 1:
                return self.step(input_ids)
            return self.prompt(input_ids)

        def prepare_inputs_for_generation(self, input_ids, pattern=None, **kwargs):
            if pattern is None:
                pattern = self.build(input_ids)
            return {"input_ids": input_ids, "pattern": pattern}

        def make_table(self, length):
            self.table = torch.arange(length).float()

        def step(self, input_ids):
            return input_ids

        def prompt(self, input_ids):
            return input_ids

        def build(self, input_ids):
            return input_ids
"""


def test_what_runs_in_the_first_step_only() -> None:
    file = view_of_source(textwrap.dedent(STEPS), path="toy.py")
    paths = {view.qualname.rpartition(".")[2]: view.frequency(view.node).path for view in file.functions()}
    assert paths["step"] == (Level.REQUEST, Level.TOKEN)
    assert paths["prompt"] == paths["build"] == (Level.REQUEST,)
    assert paths["make_table"] == ()


def test_what_is_left_to_those_without_a_kernel() -> None:
    code = """
        class Linear:
            def forward(self, weight):
                if kernel_can_read(weight):
                    return fast(weight)
                return slow(weight)
        """
    view = next(v for v in view_of_source(textwrap.dedent(code)).functions() if v.qualname == "Linear.forward")
    calls = {ast.unparse(node.func): node for node in view.nodes(ast.Call) if isinstance(node, ast.Call)}
    assert view.regions(calls["slow"]) & Region.FALLBACK
    assert not view.regions(calls["fast"]) & Region.FALLBACK


def test_classes_that_a_call_puts_implementations_beside() -> None:
    code = """
        from integrations import use_experts_implementation

        class Experts:
            def forward(self, x):
                return x

        class Others:
            def forward(self, x):
                return x

        def replace():
            return use_experts_implementation(experts_class=Experts, has_bias=False)
        """
    file = view_of_source(textwrap.dedent(code))
    found = {view.qualname: bool(view.regions(view.node) & Region.FALLBACK) for view in file.functions()}
    assert found["Experts.forward"] and not found["Others.forward"]


@pytest.mark.parametrize(("state", "default", "off"), [("<0", "3", True), (">=0", "-1", True), (">=0", "None", False)])
def test_comparisons_with_numbers(state: str, default: str, off: bool) -> None:
    assert switched_off(state, default) is off
