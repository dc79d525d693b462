"""What a model's configuration switches off by default does not run, nor what its callers never bring about."""

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


PARTS = """
    import torch
    from transformers import GenerationMixin, PreTrainedModel

    class Codec(PreTrainedModel, GenerationMixin):
        def forward(self, input_ids):
            return self.encode(input_ids)

        def encode(self, input_ids):
            return input_ids

        def generate(self, input_ids):
            states = self.encode(input_ids)
            return {last}
"""


@pytest.mark.parametrize(
    ("last", "per_token"), [("self.decoder.generate(states)", False), ("super().generate(states)", True)]
)
def test_a_model_whose_parts_generate_does_not_run_for_each_token(last: str, per_token: bool) -> None:
    file = view_of_source(textwrap.dedent(PARTS.format(last=last)), path="toy.py")
    forward = next(view for view in file.functions() if view.qualname == "Codec.forward")
    assert (Level.TOKEN in forward.frequency(forward.node).path) is per_token


def test_what_only_training_calls_is_entered_by_no_convention() -> None:
    code = """
        import torch
        from torch import nn

        class Head(nn.Module):
            def forward(self, x):
                return x

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = Head()

            def forward(self, x):
                if self.training:
                    return self.head(x)
                return x
        """
    views = {view.qualname: view for view in view_of_source(textwrap.dedent(code)).functions()}
    assert views["Model.forward"].frequency(views["Model.forward"].node).known
    assert not views["Head.forward"].frequency(views["Head.forward"].node).known


def test_private_parameters_stay_as_they_are() -> None:
    code = """
        class Attention:
            def forward(self, x, _offload=False, offload=False):
                if _offload:
                    self.move(x)
                if offload:
                    self.shift(x)
                return x

            def move(self, x):
                return x

            def shift(self, x):
                return x
        """
    file = view_of_source(
        "import torch\n" + textwrap.dedent(code).replace("class Attention:", "class Attention(torch.nn.Module):")
    )
    views = {view.qualname: view for view in file.functions()}
    assert not views["Attention.move"].frequency(views["Attention.move"].node).known
    assert views["Attention.shift"].frequency(views["Attention.shift"].node).known


def test_what_models_are_generated_from_runs_nowhere() -> None:
    code = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                return hidden_states * hidden_states.max().item()
        """
    for path, runs in (("lib/models/toy/modular_toy.py", False), ("lib/models/toy/modeling_toy.py", True)):
        file = view_of_source(textwrap.dedent(code), path=path)
        found = [f for f in run_rules(file, all_rules()).findings if f.confidence.value != "low"]
        assert bool(found) is runs


@pytest.mark.parametrize(
    ("before", "runs"),
    [
        ("if mask is None: mask = torch.ones(3)", False),
        ("mask = other", True),
        ("if mask is None: mask = torch.ones(3)\n        mask = other", True),
    ],
)
def test_what_is_made_where_it_is_missing_is_given(before: str, runs: bool) -> None:
    code = f"""
import torch

class Layer(torch.nn.Module):
    def forward(self, x, mask=None):
        if mask is None:
            self.fill(x)
        return x

    def fill(self, x):
        return x

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Layer()

    def forward(self, x, other, mask=None):
        {before}
        return self.layer(x, mask=mask)
"""
    views = {view.qualname: view for view in view_of_source(code).functions()}
    assert views["Layer.fill"].frequency(views["Layer.fill"].node).known is runs


def test_a_part_that_is_off_by_default_is_entered_by_no_convention() -> None:
    code = """
        import torch
        from torch import nn

        class ToyConfig:
            enable_fusion: bool = False

        class FusionBlock(nn.Module):
            def forward(self, x):
                return x

        class ToyModel(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.enable_fusion = config.enable_fusion
                self.fusion = FusionBlock()

            def forward(self, x):
                if self.enable_fusion:
                    x = self.fusion(x)
                return x
        """
    views = {view.qualname: view for view in view_of_source(textwrap.dedent(code)).functions()}
    assert views["ToyModel.forward"].frequency(views["ToyModel.forward"].node).known
    assert not views["FusionBlock.forward"].frequency(views["FusionBlock.forward"].node).known


CONSTRUCTED = """
    import torch

    class Tracker{base}:
        def __init__(
            self, model, every=-1, threshold: float = 0.0, *, flag=False, kept=None, block_size=0, near_bias=False,
            beam_size=1
        ):
            self.model = model
            self.every = every
            self.threshold = threshold
            self.flag = flag
            self.kept = kept
            self.block_size = block_size
            self.beam_size = beam_size
            self.near_bias = near_bias
            self.changed = flag
            self.worked = every
            if model is None:
                self.worked = 3

        def __call__(self, x: torch.Tensor):
            if {asked}:
                self.slow(x)
            return x

        def slow(self, x: torch.Tensor):
            return x.max().item()

        def change(self):
            self.changed = True

    class Holder:
        def __init__(self, model, every=-1):
            self.tracker = {made}

        def __call__(self, x: torch.Tensor):
            return self.tracker(x)

    def serve(model, x: torch.Tensor):  # awp: hot
        return {held}(x)
"""


@pytest.mark.parametrize(
    ("asked", "made", "held", "base", "runs"),
    [
        ("self.every > 0", "Tracker(model)", "Holder(model)", "", False),
        ("self.threshold > 0 and x is not None", "Tracker(model)", "Holder(model)", "", False),
        ("self.flag", "Tracker(model)", "Holder(model)", "", False),
        ("self.near_bias", "Tracker(model)", "Holder(model)", "", False),
        ("self.flag", "Tracker(model); torch.nn.Flagged(flag=model)", "Holder(model)", "", False),
        ("self.flag", "Tracker(model); model.Flagged(flag=model)", "Holder(model)", "", True),
        ("self.kept is not None", "Tracker(model)", "Holder(model)", "", False),
        ("not self.flag", "Tracker(model)", "Holder(model)", "", True),
        ("self.every > 0", "Tracker(model, 3)", "Holder(model)", "", True),
        ("self.every > 0", "Tracker(model, every=model.n)", "Holder(model)", "", True),
        ("self.every > 0", "Tracker(model, **model.settings)", "Holder(model)", "", True),
        ("self.every > 0", "Tracker(model, every=every)", "Holder(model)", "", False),  # handed on
        ("self.every > 0", "Tracker(model, every=every)", "Holder(model, 3)", "", True),
        ("self.every > 0", "model.make(Tracker, every=3)", "Holder(model)", "", True),  # somebody passes that name
        (
            "self.every > 0",
            "None",
            "Tracker.__call__(model, x) or Holder(model)",
            "",
            False,
        ),  # left to those who use it
        ("self.kept is not None", "None", "Tracker.__call__(model, x) or Holder(model)", "", True),
        ("self.every > 0", "None", "Tracker.__call__(model, x) or Holder(model)", "(torch.nn.Module)", True),
        ("self.block_size > 0", "Tracker(model)", "Holder(model)", "", True),
        ("self.beam_size > 1", "Tracker(model)", "Holder(model)", "", False),
        ("self.beam_size > 1", "Tracker(model, beam_size=4)", "Holder(model)", "", True),
        (
            "self.beam_size > 1",
            "Tracker(model); model(state, beam_size=state['beam_size'])",
            "Holder(model)",
            "",
            False,
        ),
        ("self.beam_size > 1", "Tracker(model); model(beam_size=state.get('beam_size'))", "Holder(model)", "", False),
        ("self.beam_size > 1", "Tracker(model); model(beam_size=state['beams'])", "Holder(model)", "", True),
        ("self.beam_size > 1", "Tracker(model); model(beam_size=found['beam_size'])", "Holder(model)", "", True),
        ("self.changed", "Tracker(model)", "Holder(model)", "", True),  # set elsewhere, too
        ("self.worked > 0", "Tracker(model)", "Holder(model)", "", True),
    ],
)
def test_what_the_constructor_leaves_off(asked: str, made: str, held: str, base: str, runs: bool) -> None:
    code = textwrap.dedent(CONSTRUCTED.format(asked=asked, made=made, held=held, base=base))
    views = {view.qualname: view for view in view_of_source(code).functions()}
    call = views["Tracker.__call__"]
    part = next(node for node in ast.walk(call.node) if isinstance(node, ast.If)).body[0]
    assert (Region.FALLBACK not in call.regions(part)) is runs


@pytest.mark.parametrize(("default", "runs"), [("0", False), ("0.0", False), ("3", True)])
def test_a_number_that_calls_leave_at_its_default(default: str, runs: bool) -> None:
    code = f"""
import torch

def clean(masks: torch.Tensor, area={default}):
    if area > 0:
        masks = masks[masks.sum() > area]
    return masks

def serve(masks: torch.Tensor):  # awp: hot
    return clean(masks)
"""
    views = {view.qualname: view for view in view_of_source(code).functions()}
    part = next(node for node in ast.walk(views["clean"].node) if isinstance(node, ast.If)).body[0]
    assert (Region.FALLBACK not in views["clean"].regions(part)) is runs


@pytest.mark.parametrize(
    ("test", "runs"),
    [
        ("ratio is None or x.max() > ratio", False),
        ("ratio is not None and x.max() > ratio", False),
        ("other is None or x.max() > ratio", True),
        ("x.max() > 1 and ratio is not None", True),
        ("not (ratio and x.max() > ratio)", False),
    ],
)
def test_what_follows_in_a_test_that_is_decided_before(test: str, runs: bool) -> None:
    code = f"""
import torch

def choose(x: torch.Tensor, other, ratio=None):
    if {test}:
        return x
    return x + 1

def serve(x: torch.Tensor):  # awp: hot
    return choose(x, x)
"""
    views = {view.qualname: view for view in view_of_source(code).functions()}
    read = next(node for node in ast.walk(views["choose"].node) if isinstance(node, ast.Call))
    assert (Region.FALLBACK not in views["choose"].regions(read)) is runs


FLAGGED = """
import torch

class Tracker:
    def __init__(self, model, every=-1, bound=0.0, kept=True):
        self.model = model
        self.every = every
        self.bound = bound
        self.kept = kept

    def predict(self, x: torch.Tensor, scores):
        crossed = False
        if self.bound > 0:
            for score in scores:
                if score > 1:
                    crossed = True
        due = self.every > 0 and len(scores) > 0
        {before}
        if {test}:
            self.slow(x)
        return x

    def slow(self, x: torch.Tensor):
        return x.max().item()

def serve(model, x: torch.Tensor, scores):  # awp: hot
    return Tracker(model).predict(x, scores)
"""


@pytest.mark.parametrize(
    ("test", "before", "runs"),
    [
        ("due", "pass", False),
        ("crossed", "pass", False),
        ("due or crossed", "pass", False),
        ("self.every > 0 or self.bound > 0", "pass", False),
        ("due or self.kept", "pass", True),
        ("due or len(scores) > 3", "pass", True),
        ("not due", "pass", True),
        ("due", "due = due or len(scores) > 3", True),
        ("due", "due |= len(scores) > 3", True),
        ("due", "due, other = scores", True),
        ("crossed", "crossed = True", True),
    ],
)
def test_names_that_only_switches_make_true(test: str, before: str, runs: bool) -> None:
    code = FLAGGED.format(test=test, before=before)
    views = {view.qualname: view for view in view_of_source(code).functions()}
    view = views["Tracker.predict"]
    part = next(node for node in view.nodes(ast.Expr) if "self.slow" in ast.unparse(node))
    assert (Region.FALLBACK not in view.regions(part)) is runs


FILLED = """
    import torch

    class Attention(torch.nn.Module):
        def __init__(self, dim, windowed=False):
            super().__init__()
            self.windowed = windowed

        def forward(self, x: torch.Tensor):
            if self.windowed:
                x = x + x.max().item()
            return x

    class Block(torch.nn.Module):
        def __init__(self, dim, windowed=False):
            super().__init__()
            self.attention = Attention(dim, windowed=windowed)

        def forward(self, x: torch.Tensor):
            return self.attention(x)

    class Encoder(torch.nn.Module):
        def __init__(self, dim, depth, blocks=(2, 5)):
            super().__init__()
            self.flags = {first} * depth
            if isinstance(blocks, bool) and blocks:
                self.flags = [True] * depth
            else:
                {fill}
            self.layers = torch.nn.ModuleList()
            for i in range(depth):
                self.layers.append(Block(dim, windowed=self.flags[i]))

        def forward(self, x: torch.Tensor):
            for layer in self.layers:
                x = layer(x)
            return x

    def serve(x: torch.Tensor):  # awp: hot
        return {made}(x)
"""

FILL = "for i in blocks:\n                    self.flags[i] = True"


@pytest.mark.parametrize(
    ("first", "fill", "made", "runs"),
    [
        ("[False]", FILL, "Encoder(64, 12, blocks=())", False),
        ("[False]", FILL, "Encoder(64, 12, blocks=[])", False),
        ("[False]", FILL, "Encoder(64, 12, blocks=False)", False),
        ("[False]", FILL, "Encoder(64, 12, ())", False),
        ("[False]", FILL, "Encoder(64, 12)", True),  # has its default
        ("[False]", FILL, "Encoder(64, 12, blocks=(1,))", True),
        ("[False]", FILL, "Encoder(64, 12, blocks=x)", True),
        ("[True]", FILL, "Encoder(64, 12, blocks=())", True),
        ("[False]", "self.flags[0] = True", "Encoder(64, 12, blocks=())", True),
        ("[False]", "self.flags.append(dim)", "Encoder(64, 12, blocks=())", True),
        ("[False]", "for i in range(dim):\n                    self.flags[i] = True", "Encoder(64, 12, ())", True),
        ("[False]", FILL, "Encoder(64, 12, blocks=()) or Encoder(64, 12, blocks=(3,))", True),
    ],
)
def test_flags_of_layers_that_a_parameter_fills(first: str, fill: str, made: str, runs: bool) -> None:
    code = textwrap.dedent(FILLED.format(first=first, fill=fill, made=made))
    views = {view.qualname: view for view in view_of_source(code).functions()}
    attention = views["Attention.forward"]
    part = next(node for node in ast.walk(attention.node) if isinstance(node, ast.If)).body[0]
    assert (Region.FALLBACK not in attention.regions(part)) is runs
