"""What constructors, callers and conventions leave off: code behind it is not reached."""

from __future__ import annotations

import ast
import textwrap

import pytest

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.detector.semantics.view import Level, Region
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules

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


CHOSEN = """
    import torch

    class Search:
        def __init__(self, model, {parameter}="greedy"):
            self.model = model
            if {parameter} == "greedy":
                self.algorithm = self.greedy
            elif {parameter} == "beams":
                self.algorithm = self.beams
            else:
                self.algorithm = self.sampled

        def __call__(self, x: torch.Tensor):
            return self.algorithm(x)

        def greedy(self, x: torch.Tensor):
            return first(x)

        def beams(self, x: torch.Tensor):
            return second(x)

        def sampled(self, x: torch.Tensor):
            return third(x)

    def first(x): ...
    def second(x): ...
    def third(x): ...

    def serve(model, x: torch.Tensor):  # awp: hot
        return Search(model)(x)
"""


@pytest.mark.parametrize(
    ("parameter", "known"), [("search_type", {"first", "third"}), ("kind_type", {"first", "second", "third"})]
)
def test_the_method_that_a_text_chooses(parameter: str, known: set[str]) -> None:
    code = textwrap.dedent(CHOSEN.format(parameter=parameter))
    views = {view.qualname: view for view in view_of_source(code).functions()}
    ends = ("first", "second", "third")
    assert {name for name in ends if views[name].frequency(views[name].node).known} == known


SOLVER = """
    import torch

    class Solver:
        def __init__(self, kind="linear"):
            self.kind = kind

        def sample(self, x: torch.Tensor, method="multistep"):
            if method in ("single", "fixed"):
                x = self.fixed(x)
            elif method == "multistep":
                x = self.multi(x)
            return self.discrete(x) if self.kind == "discrete" else self.linear(x)

        def inverse(self, x: torch.Tensor, method="multistep"):
            return self.sample(x, method=method)

        def fixed(self, x): ...
        def multi(self, x): ...
        def discrete(self, x): ...
        def linear(self, x): ...

    def serve(x: torch.Tensor):  # awp: hot
        return Solver("linear").sample(x, method={method})
"""


@pytest.mark.parametrize(
    ("method", "known"),
    [
        ("'multistep'", {"multi", "linear"}),
        ("'fixed'", {"multi", "fixed", "linear"}),
        ("x.method", {"multi", "fixed", "linear"}),
    ],
)
def test_a_word_that_a_call_passes_chooses_the_way(method: str, known: set[str]) -> None:
    code = textwrap.dedent(SOLVER.format(method=method))
    views = {view.qualname: view for view in view_of_source(code).functions()}
    ends = ("multi", "fixed", "discrete", "linear")
    found = {name: views[f"Solver.{name}"] for name in ends}
    assert {name for name, view in found.items() if view.frequency(view.node).known} == known
