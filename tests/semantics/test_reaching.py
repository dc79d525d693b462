"""Which functions a call may reach: callbacks, duck types, overrides, containers, layers."""

from __future__ import annotations

from typing import Any

import pytest
from heated import LIBRARY, chain, facts_of, frequency, none

from awp_lint.detector.semantics.asking import Asking, from_project


@pytest.mark.parametrize(
    "grown", ["blocks += [Block()]", "blocks += [Block() for _ in range(2)]", "blocks.append(Block())"]
)
def test_a_list_that_is_added_to_another_holds_what_is_called(link: Any, grown: str) -> None:
    model = f"""
        from torch import nn
        from .layers import Block

        class Model(nn.Module):
            def __init__(self, widths):
                super().__init__()
                blocks = []
                for width in widths:
                    {grown}
                self.layers = nn.ModuleList(blocks)
            def forward(self, ids):
                for layer in self.layers:
                    ids = layer(ids)
                return ids
        """
    project = link({**LIBRARY, "lib/model.py": model})
    assert frequency(project, "lib.layers.Block.forward") == "request×token×layer proven"
    assert chain(project, "lib.layers.Attention.forward")[-1] == ("lib/layers.py", 17, "Block.forward")


def test_library_callbacks(link: Any) -> None:
    source = """
        from transformers import LogitsProcessor, StoppingCriteria
        class Ban(LogitsProcessor):
            def __call__(self, ids, scores): return helper(scores)
        class Stop(StoppingCriteria):
            def __call__(self, ids, scores): ...
        def helper(scores): ...
        """
    project = link({"p.py": source})
    assert frequency(project, "p.Ban.__call__") == "request×token proven"
    assert frequency(project, "p.helper") == "request×token proven"
    assert chain(project, "p.helper") == [("transformers", 0, "GenerationMixin.generate"), ("p.py", 4, "Ban.__call__")]


def test_duck_types_are_assumed(link: Any) -> None:
    source = """
        class EulerScheduler:
            def step(self, noise, t): ...
        class FluxPipeline:
            def __init__(self, scheduler): self.scheduler = scheduler
            def __call__(self, prompt, timesteps):
                for t in timesteps:
                    self.scheduler.step(prompt, t)
        """
    project = link({"d.py": "import torch\n" + source.replace("\n        ", "\n")})
    assert frequency(project, "d.EulerScheduler.step") == "request×step assumed"


def test_overrides_are_reached_through_the_base(link: Any) -> None:
    source = """
        class Base:
            def generate(self, ids, max_new_tokens):
                for _ in range(max_new_tokens):
                    ids = self.advance(ids)
            def advance(self, ids): raise NotImplementedError
        class One(Base):
            def advance(self, ids): ...
        class Two(Base):
            def advance(self, ids): ...
        """
    project = link({"g.py": "import torch\n" + source.replace("\n        ", "\n")})
    assert frequency(project, "g.One.advance") == frequency(project, "g.Two.advance") == "request×token assumed"


def test_what_is_looked_up_in_a_container_of_the_module(link: Any) -> None:
    source = """
        _TABLES = {}
        @app.get("/")
        def handler(self, size):
            return table(size), codes(size), local(size), last(size), geometry(size), mask(self, size)
        def table(size):
            key = (size, "table")
            if key in _TABLES:
                return _TABLES[key]
            made = make(size)
            _TABLES[key] = made
            return made
        def codes(size):
            if (found := _TABLES.get(size)) is not None:
                return found
            _TABLES[size] = made = make_codes(size)
            return made
        def local(size):
            seen = {}
            if size in seen:
                return seen[size]
            seen[size] = work(size)
            return seen[size]
        def last(size):
            global _LAST
            if _LAST is not None:
                of, kept = _LAST
                if of is size:
                    return kept
            kept = plan(size)
            _LAST = (size, kept)
            return kept
        def geometry(size):
            found = GEOMETRY.get(size)
            if found is None:
                found = GEOMETRY[size] = build(size)
            return found
        def mask(self, size):
            cached = self.masks.get(size)
            if cached is not None and cached[0] == size:
                return cached[1]
            self.mask_cache[size] = found = draw(size)
            return found
        def make(size): ...
        def make_codes(size): ...
        def draw(size): ...
        def plan(size): ...
        def build(size): ...
        def work(size): ...
        """
    project = link({"h.py": source})
    assert frequency(project, "h.make").startswith("setup")
    assert frequency(project, "h.make_codes").startswith("setup")
    assert frequency(project, "h.plan").startswith("setup")
    assert frequency(project, "h.draw").startswith("setup")
    assert frequency(project, "h.build").startswith("setup")
    assert frequency(project, "h.work") == "request proven"


def test_a_model_of_a_family_with_a_layers_name_is_no_layer(link: Any) -> None:
    source = """
        import torch
        class QwenMoeVisionModel(torch.nn.Module):
            def forward(self, x): ...
        class QwenMoeBlock(torch.nn.Module):
            def forward(self, x): ...
        class ActionHead(torch.nn.Module):
            def forward(self, x): ...
        class QwenMoe(torch.nn.Module):
            def forward(self, x): ...
        class ConvSoftArgmax2d(torch.nn.Module):
            def forward(self, x): ...
        class ResizePostProcessor(torch.nn.Module):
            def forward(self, x): ...
        class InputNormalization(torch.nn.Module):
            def forward(self, x): ...
        """
    project = link({"h.py": source})
    for once in ("ConvSoftArgmax2d", "ResizePostProcessor", "InputNormalization"):
        assert frequency(project, f"h.{once}.forward") == "request assumed"
    assert frequency(project, "h.QwenMoeVisionModel.forward") == "request assumed"
    assert frequency(project, "h.ActionHead.forward") == "request assumed"
    assert frequency(project, "h.QwenMoeBlock.forward") == "request×layer assumed"
    assert frequency(project, "h.QwenMoe.forward") == "request×layer assumed"


def test_a_stage_with_steps_of_its_own_is_no_layer(link: Any) -> None:
    source = """
        @app.get("/")
        def handler(stages, timesteps, scheduler):
            for stage in stages:
                outer(stage)
                for t in timesteps:
                    inner(t)
            for stage in stages:
                layer(stage)
        def outer(stage): ...
        def inner(t): ...
        def layer(stage): ...
        """
    project = link({"h.py": source})
    assert frequency(project, "h.outer") == "request×loop proven"
    assert frequency(project, "h.inner") == "request×step proven"
    assert frequency(project, "h.layer") == "request×layer proven"


def test_a_class_that_is_asked_about_is_not_made_and_set_up_is_not_heated(link: Any) -> None:
    source = """
        class Engine:
            def __init__(self): build()
            def load_model(self): load()
        @app.get("/")
        def handler(request, engine: Engine, steps):
            if isinstance(engine, Engine):
                step(engine)
            for step_index in range(num_steps):
                engine.load_model()
        def build(): ...
        def load(): ...
        def step(engine): ...
        """
    project = link({"h.py": source})
    assert frequency(project, "h.build").startswith("setup")
    assert frequency(project, "h.load").startswith("setup")
    assert frequency(project, "h.step") == "request proven"


def test_a_function_of_a_library_is_no_method_of_the_project(link: Any) -> None:
    source = """
        from torch import nn
        class Mixin:
            def fold_all(self): work()
            def unfold_all(self): rest()
        @app.get("/")
        def handler(x, thing):
            nn.functional.fold_all(x)
            thing.unfold_all()
        def work(): ...
        def rest(): ...
        """
    project = link({"h.py": source})
    assert frequency(project, "h.work") == "unknown unknown"
    assert frequency(project, "h.rest") == "request assumed"


def test_callbacks_handed_on(link: Any) -> None:
    source = """
        import threading
        def worker():
            while True:
                item = request_queue.get()
                serve(item)
        def serve(item): ...
        def hook(*args): ...
        def main():
            threading.Thread(target=worker).start()
            model.register_forward_hook(hook)
        if __name__ == "__main__":
            main()
        """
    project = link({"w.py": source})
    assert frequency(project, "w.worker") == "setup proven"
    assert frequency(project, "w.serve") == "request proven"
    assert frequency(project, "w.hook") == "unknown unknown"


def test_calls_reach(link: Any) -> None:
    project = link(LIBRARY)
    model = Asking("lib/model.py", facts_of(project, "lib/model.py"), from_project(project, "lib/model.py"), none)
    assert model.reached("Model.forward", 9, (11, 18)) == ("lib.layers.Block.forward",)
    app = Asking("app.py", facts_of(project, "app.py"), from_project(project, "app.py"), none)
    assert app.reached("answer", 9, (11, 11)) == ("lib.generate.generate",)
    assert app.reached("answer", 9, (1, 1)) == app.reached("nobody", 9, (11, 11)) == ()


def test_a_helper_that_enters_generate_anew(link: Any) -> None:
    project = link(
        {
            "lib.py": """
                class Mixin:
                    def generate(self, ids):
                        self.heal(ids)
                        return ids

                    def heal(self, ids):
                        for row in ids:
                            self.generate(row)

                class Speech(Mixin):
                    def generate(self, ids):
                        return finish(super().generate(ids))

                def finish(ids): return ids
                """,
            "app.py": """
                from fastapi import FastAPI
                from lib import Mixin

                app = FastAPI()
                model = Mixin()

                @app.post("/")
                def answer(request):
                    return model.generate(request.ids)
                """,
        }
    )
    assert frequency(project, "lib.finish").startswith("request ")


WRAPPERS = """
    import torch

    class Base:
        def update_metadata(self, x):
            return prepare(x)

    class OfGPU(Base):
        def update_metadata(self, x):
            return place(x)

    class Of{other}(Base):
        pass

    class TextPipeline:
        def __init__(self, wrapper: Base):
            self.wrapper = wrapper
        def __call__(self, x):
            return self.wrapper.update_metadata(x)

    def prepare(x): ...
    def place(x): ...
    """


@pytest.mark.parametrize(("other", "heated"), [("CPU", False), ("XPU", True)])
def test_a_method_that_only_the_class_for_the_host_inherits_is_not_heated(link: Any, other: str, heated: bool) -> None:
    linked = link({"pkg/a.py": WRAPPERS.format(other=other)})
    reach = {name: linked.frequencies.reach[linked.index.by_function[f"pkg.a.{name}"]] for name in ("prepare", "place")}
    assert reach["place"] is not None
    assert (reach["prepare"] is not None) is heated


CODEC = """
    import torch
    from torch import nn

    class Codec(nn.Module):
        def forward(self, x):
            return commitment(x)
        def {beside}(self, x):
            return {does}(x)

    class Speaker(nn.Module):
        def __init__(self):
            super().__init__()
            self.codec = Codec()
        def forward(self, x):
            return self.codec.{called}(x)

    def commitment(x): ...
    def quantise(x): ...
    """


@pytest.mark.parametrize("beside", ["encode", "inference"])
@pytest.mark.parametrize(("called", "heated"), [("{beside}", False), ("forward", True), ("other", None)])
def test_forward_beside_what_others_call_is_for_training(
    link: Any, beside: str, called: str, heated: bool | None
) -> None:
    linked = link({"pkg/a.py": CODEC.format(beside=beside, called=called.format(beside=beside), does="quantise")})
    reached = linked.frequencies.reach[linked.index.by_function["pkg.a.commitment"]] is not None
    assert reached is (beside == "encode" if heated is None else heated)  # what infers by its name has callers outside


@pytest.mark.parametrize(
    ("does", "heated"), [("quantise", False), ("self.forward", True), ("self", True), ("self.half", True)]
)
def test_forward_beside_a_method_that_infers_by_it(link: Any, does: str, heated: bool) -> None:
    code = CODEC.format(beside="inference", called="other", does=does)
    code = code.replace(
        "    class Speaker", "        def half(self, x):\n            return self(x)\n\n    class Speaker", 1
    )
    linked = link({"pkg/a.py": code})
    assert (linked.frequencies.reach[linked.index.by_function["pkg.a.commitment"]] is not None) is heated
