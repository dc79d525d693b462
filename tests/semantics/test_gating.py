"""Branches below parameters that some or all calls leave out."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

import pytest

from awp_lint.detector.semantics.extract import extract
from awp_lint.detector.semantics.model import view_of_source
from awp_lint.detector.semantics.view import Region

PREDICTOR = """
    import torch

    class SamPredictor:
        def prepare(self, x, points=None, boxes=None, other=None, plain=False):
            if boxes is not None:
                boxes = torch.as_tensor(boxes)
                self.placed(boxes)
            if other is not None:
                self.never(other)
            if not plain:
                self.always(x)
            if points is None:
                return x
            self.each(points)
            return x

        def predict(self, x, timesteps, boxes=None):
            self.prepare(x, boxes=boxes)
            for t in timesteps:
                self.prepare(x, points=t)

        def placed(self, x): ...
        def never(self, x): ...
        def always(self, x): ...
        def each(self, x): ...
    """


@pytest.fixture
def reach(link: Any) -> Any:
    def ask(source: str, name: str) -> list[str] | None:
        linked = link({"pkg/a.py": source})
        found = linked.frequencies.reach[linked.index.by_function[f"pkg.a.{name}"]]
        return None if found is None else [level.value for level in found.path]

    return ask


def _parts(linked: Any, name: str) -> dict[tuple[str, str], Any]:
    number = linked.index.by_function[f"pkg.a.{name}"]
    return {(p, s): e and [v.value for v in e.path] for p, s, e in linked.parts("pkg/a.py", number)}


def test_a_loop_that_leaves_a_parameter_out_does_not_heat_what_stands_below_it(reach: Any) -> None:
    assert reach(PREDICTOR, "SamPredictor.prepare") == ["request", "step"]
    assert reach(PREDICTOR, "SamPredictor.placed") == ["request"]
    assert reach(PREDICTOR, "SamPredictor.each") == ["request", "step"]
    assert reach(PREDICTOR, "SamPredictor.always") == ["request", "step"]


def test_what_no_call_makes_run_is_entered_by_none(reach: Any) -> None:
    assert reach(PREDICTOR, "SamPredictor.never") is None


def test_the_parts_of_a_function_tell_how_often_they_are_entered(link: Any) -> None:
    # the part below `points is None: return` is entered by the call that heats the whole: nothing to tell
    assert _parts(link({"pkg/a.py": PREDICTOR}), "SamPredictor.prepare") == {
        ("boxes", "given"): ["request"],
        ("other", "given"): None,
    }


HANDED_ON = """
    def generate(prompts, n):
        for _ in range(n):
            outer(prompts)

    def outer(x, mask=None):
        return inner(x, mask{how})

    def inner(x, mask=None):
        if mask is not None:
            masked(x)
        return x

    def masked(x): ...
    """


def test_a_parameter_that_is_handed_on_is_followed_to_the_callers(reach: Any) -> None:
    assert reach("import torch\n" + _dedented(HANDED_ON.format(how="")), "masked") is None


def test_a_parameter_that_was_made_something_else_is_not(reach: Any) -> None:
    made = _dedented(HANDED_ON.format(how="")).replace("    return inner", "    mask = x > 0\n    return inner")
    assert reach("import torch\n" + made, "masked") is not None
    replaced = _dedented(HANDED_ON.format(how="")).replace(
        "    return inner", "    if mask is not None:\n        mask = mask + 1\n    return inner"
    )
    assert reach("import torch\n" + replaced, "masked") is None


def _dedented(text: str) -> str:
    return textwrap.dedent(text)


CALLED = """
    import torch

    class TextPipeline:
        def __call__(self, x, mask=None):
            return work({passed})

    def work(x, mask=None, *, flag=True):
        if mask is None:
            return plain(x)
        if flag:
            return flagged(x)
        return masked(x)

    def plain(x): ...
    def flagged(x): ...
    def masked(x): ...
    """


@pytest.mark.parametrize(
    ("passed", "plain", "flagged", "masked"),
    [
        ("x", True, False, False),
        ("x, None", True, False, False),
        ("x, mask=mask", True, True, False),  # from outside anything may come
        ("x, x + 1, flag=False", True, False, True),
        ("x, [1], flag=False", False, False, True),
        ("x, **mask", True, True, True),
        ("*x", True, True, True),
        ("x, mask=f(mask), flag=mask", True, True, True),
    ],
)
def test_what_is_passed_decides(reach: Any, passed: str, plain: bool, flagged: bool, masked: bool) -> None:
    source = CALLED.format(passed=passed)
    found = {name: reach(source, name) is not None for name in ("plain", "flagged", "masked")}
    assert found == {"plain": plain, "flagged": flagged, "masked": masked}


def test_a_call_of_unknown_target_that_passes_the_parameter_leaves_all_open(reach: Any) -> None:
    source = _dedented(CALLED.format(passed="x")).replace("work", "forward")
    assert reach(source, "flagged") is None
    beside = "\n\nclass Other:\n    def run(self, x):\n        return self.part[0](x, mask=x)\n"
    assert reach(source + beside, "flagged") is not None


@pytest.mark.parametrize(
    ("made", "reached"),
    [
        ("mask = torch.ones(3)", False),
        ("mask = f(x)\n        if x:\n            mask = mask.repeat(2)", False),
        ("mask = x + 1", False),
        ("mask = x.chunk(2)[0]", False),
        ("other = torch.ones(3)\n        mask = other", False),
        ("mask = f(x)", True),
        ("if self.a:\n            mask = x.repeat(2)\n        else:\n            mask = torch.ones(3)", False),
        ("mask = x.get('mask')", True),
        ("mask = None\n        if x:\n            mask = torch.ones(3)", True),
        ("mask = torch.ones(3) if x else None", True),
    ],
)
def test_a_local_name_that_is_never_none(reach: Any, made: str, reached: bool) -> None:
    source = f"""
import torch

class TextPipeline:
    def __call__(self, x):
        {made}
        return work(x, mask)

def work(x, mask=None):
    if mask is None:
        return plain(x)

def plain(x): ...
"""
    assert (reach(source, "plain") is not None) is reached


@pytest.mark.parametrize(("first", "reached"), [("self", False), ("x", True)])
def test_a_module_is_not_handed_the_one_around_it(reach: Any, first: str, reached: bool) -> None:
    source = f"""
        import torch
        from transformers import PreTrainedModel

        class Attention(torch.nn.Module):
            def forward(self, x):
                interface = KINDS.get_interface("sdpa")
                return interface({first}, x, x, x)

        class Layer(torch.nn.Module):
            def __init__(self):
                self.attention = Attention()

            def forward(self, x, a, b, mask=None):
                if mask is not None:
                    masked(x)
                return self.attention(x)

        class ToyModel(PreTrainedModel):
            def __init__(self, config):
                self.layers = torch.nn.ModuleList(Layer() for _ in range(2))

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x, x, x)
                return x

        def masked(x): ...
        """
    assert (reach(source, "masked") is not None) is reached


PROMPTED = """
    import torch
    from transformers import PreTrainedModel

    class ToyConfig:
        prompted: bool = False
        always: bool = True

    class Layer(torch.nn.Module):
        def forward(self, x, prompt=None):
            if prompt is not None:
                masked(x)
            return x

    class Encoder(torch.nn.Module):
        def __init__(self, config):
            self.prompted = config.prompted
            self.always = config.always
            self.layers = torch.nn.ModuleList(Layer() for _ in range(2))

        def forward(self, x):
            {before}
            for layer in self.layers:
                x = layer(x, prompt={passed})
            return x

    class ToyModel(PreTrainedModel):
        def __init__(self, config: ToyConfig):
            self.encoder = Encoder(config)

        def forward(self, x):
            return self.encoder(x)

    def masked(x): ...
    """


@pytest.mark.parametrize(
    ("before", "passed", "reached"),
    [
        ("pass", "(x[0] if self.prompted else None)", False),
        ("pass", "(x[0] if self.always else None)", True),
        ("pass", "(x[0] if x else None)", True),
        ("pass", "(None if self.prompted else x[0])", True),
        ("prompt = None\n            if self.prompted:\n                prompt = {1: x}", "prompt", False),
        ("prompt = None\n            if self.always:\n                prompt = {1: x}", "prompt", True),
        (
            "prompt = None\n            if self.prompted:\n                prompt = {1: x}",
            "prompt if x else None",
            False,
        ),
    ],
)
def test_what_only_a_switch_gives(reach: Any, before: str, passed: str, reached: bool) -> None:
    source = _dedented(PROMPTED.replace("{before}", before).replace("{passed}", passed))
    assert (reach(source, "masked") is not None) is reached


def test_calls_of_training_say_nothing_of_what_is_passed(reach: Any) -> None:
    source = """
        import torch

        class Layer(torch.nn.Module):
            def forward(self, x):
                if self.training and self.every:
                    return self.run_by(x, work, x, x, x)
                if self.training:
                    return work(x, None)
                return work(x, [x])

        def work(x, mask):
            if mask is None:
                return plain(x)

        def plain(x): ...
        """
    assert reach(source, "plain") is None


def test_a_later_turn_of_a_loop_sees_what_an_earlier_one_binds(reach: Any) -> None:
    source = """
        import torch

        class TextPipeline:
            def __call__(self, x):
                return work(x)

        def work(x, state=None):
            for step in range(10):
                if state is not None:
                    again(state)
                state = x + 1

        def again(x): ...
        """
    assert reach(source, "again") is not None


def test_callbacks_and_unbound_calls_may_pass_anything(reach: Any) -> None:
    source = """
        import torch

        class Base:
            def work(self, x, mask=None):
                if mask is not None:
                    masked(x)

        class TextPipeline(Base):
            def __call__(self, x):
                self.work(x)
                Base.work(self, x, x)

        def masked(x): ...
        """
    assert reach(source, "masked") is not None


HANDED = """
    import torch

    class SamPredictor:
        def predict(self, x, *args, **kwargs):
            {before}
            for step in range(10):
                self.prepare(x, *args, **kwargs)

        def prepare(self, x, a=1, b=2, c=3, d=4, e=5, f=6, area=0, own=None):
            if {asked}:
                self.small(x)

        def small(self, x): ...

    def beside(work, x):
        work(x, own=x)
    """


@pytest.mark.parametrize(
    ("asked", "before", "reached"),
    [
        ("area > 0", "pass", False),
        ("area < 1", "pass", True),
        ("own is not None", "pass", True),  # some call passes that name
        ("a is None", "pass", True),  # the first of the rest
        ("area > 0", "kwargs['area'] = 3", True),
        ("area > 0", "kwargs.update(self.options)", True),
        ("area > 0", "kwargs = self.options", True),
    ],
)
def test_what_is_handed_on_with_the_rest(reach: Any, asked: str, before: str, reached: bool) -> None:
    source = _dedented(HANDED.format(asked=asked, before=before))
    assert (reach(source, "SamPredictor.small") is not None) is reached


OVERRIDDEN = """
    class Predictor:
        def __call__(self, x):
            return self.inference(x)

        def inference(self, x):
            for step in range(10):
                self.features(x, several=True)

        def features(self, x, several=False): ...

    class TextPipeline(Predictor):
        {decorated}def features(self, x, text=None{more}):
            flagged(x)

    def flagged(x): ...
    """


@pytest.mark.parametrize(
    ("decorated", "more", "reached"),
    [
        ("", "", False),  # such a call would fail
        ("", ", several=False", True),
        ("", ", **kwargs", True),
        ("@torch.no_grad()\n        ", "", True),  # who knows what it takes
    ],
)
def test_a_method_that_does_not_know_a_name_is_not_called_with_it(
    reach: Any, decorated: str, more: str, reached: bool
) -> None:
    source = "import torch\n" + _dedented(OVERRIDDEN.format(decorated=decorated, more=more))
    assert (reach(source, "flagged") is not None) is reached


@pytest.mark.parametrize(("prepared", "reached"), [("super().prepare(x, box)", False), ("self.other(x, box)", True)])
def test_what_the_base_class_was_given_none_for_stays_none(reach: Any, prepared: str, reached: bool) -> None:
    source = f"""
        import torch

        class Base:
            def prepare(self, x, box=None):
                return x, box

        class SamPredictor(Base):
            def predict(self, x, timesteps):
                for t in timesteps:
                    self.prepare(t)

            def prepare(self, x, box=None):
                x, box = {prepared}
                if box is not None:
                    placed(box)

        def placed(x): ...
        """
    assert (reach(source, "placed") is not None) is reached


def test_lines_that_no_call_makes_run_lie_in_a_fallback(link: Any) -> None:
    text = _dedented(PREDICTOR)
    file = view_of_source(text, "pkg/a.py")
    view = next(v for v in file.functions() if v.qualname == "SamPredictor.prepare")
    at = {node.lineno: node for node in view.nodes(ast.Expr) if isinstance(node, ast.Expr)}
    lines = text.splitlines()
    by_text = {lines[line - 1].strip(): node for line, node in at.items()}
    assert view.regions(by_text["self.never(other)"]) & Region.FALLBACK
    assert not view.regions(by_text["self.placed(boxes)"]) & Region.FALLBACK
    assert str(view.frequency(by_text["self.placed(boxes)"])) == "request"
    assert str(view.frequency(by_text["self.each(points)"])) == "request×step"


def test_the_same_question_asked_a_thousand_times_is_kept_once() -> None:
    body = "".join(f"    if x is None:\n        return {n}\n" for n in range(1000))
    text = f"def f(x=None):\n{body}    g(x)\n"
    function = extract(ast.parse(text), text).functions[1]
    assert function.calls[0].when == (("x", "given"),)
    assert len(function.branches) == 1001  # every return that is left, and what follows the first
