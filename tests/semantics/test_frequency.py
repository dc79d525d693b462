"""How often functions run: entry points, loops, callers across files."""

from __future__ import annotations

from typing import Any

import pytest

from awp_lint.detector.config import Settings
from awp_lint.detector.semantics.asking import Asking, from_project
from awp_lint.detector.semantics.facts import FileFacts
from awp_lint.detector.semantics.values import Certainty

LIBRARY = {
    "lib/__init__.py": "",
    "lib/layers.py": """
        import torch
        from torch import nn

        class Attention(nn.Module):
            def forward(self, x):
                return helper(x)

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.attn = Attention()
                self.tables = build_tables(8)
            def forward(self, x):
                if self.training:
                    regularise(x)
                return self.attn(x)

        def helper(x): return x
        def regularise(x): return x
        def build_tables(n):
            for layer in range(n):
                fill(layer)
        def fill(layer): ...
        """,
    "lib/model.py": """
        from torch import nn
        from .layers import Block

        class Model(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.layers = nn.ModuleList([Block() for _ in range(n)])
            def forward(self, ids):
                for layer in self.layers:
                    ids = layer(ids)
                return ids
        """,
    "lib/generate.py": """
        from .model import Model

        def generate(model: Model, ids, max_new_tokens):
            for _ in range(max_new_tokens):
                ids = pick(model(ids))
            return ids

        def pick(logits): return logits
        """,
    "app.py": """
        from fastapi import FastAPI
        from lib.generate import generate
        from lib.model import Model

        app = FastAPI()
        model = Model(4)

        @app.post("/")
        async def answer(request):
            return generate(model, request.ids, 16)

        @app.on_event("startup")
        def warm():
            for prompt in ["a"]:
                generate(model, prompt, 1)
        """,
}


def facts_of(project: Any, path: str) -> FileFacts:
    return next(file.facts for file in project.index.files if file.path == path)


def none(path: str) -> FileFacts:
    raise AssertionError(f"no position in {path} matters here")


def frequency(project: Any, dotted: str) -> str:
    found = project.frequencies.frequency(project.index.by_function[dotted])
    return f"{found} {found.certainty.name.lower()}"


def chain(project: Any, dotted: str) -> list[tuple[str, int, str]]:
    found = project.frequencies.frequency(project.index.by_function[dotted])
    return [(f.path, f.line, f.function) for f in found.chain]


def test_from_a_route_through_the_loops_of_other_files(link: Any) -> None:
    project = link(LIBRARY)
    assert frequency(project, "app.answer") == "request proven"
    assert frequency(project, "lib.generate.generate") == "request proven"
    assert frequency(project, "lib.generate.pick") == "request×token proven"
    assert frequency(project, "lib.model.Model.forward") == "request×token proven"
    assert frequency(project, "lib.layers.Block.forward") == "request×token×layer proven"
    assert frequency(project, "lib.layers.helper") == "request×token×layer proven"


def test_the_chain_explains_the_path(link: Any) -> None:
    project = link(LIBRARY)
    assert chain(project, "app.answer") == []
    assert chain(project, "lib.layers.Attention.forward") == [
        ("app.py", 11, "answer"),
        ("lib/generate.py", 6, "generate"),
        ("lib/model.py", 11, "Model.forward"),
        ("lib/layers.py", 17, "Block.forward"),
    ]


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


def test_set_up_and_training_do_not_heat(link: Any) -> None:
    project = link(LIBRARY)
    assert frequency(project, "lib.layers.build_tables").startswith("setup")
    assert frequency(project, "lib.layers.fill").startswith("setup")  # a loop of set-up code
    assert frequency(project, "lib.layers.regularise") == "unknown unknown"
    assert frequency(project, "app.warm").startswith("setup")


def test_a_model_library_alone_is_assumed_to_serve(link: Any) -> None:
    project = link({path: text for path, text in LIBRARY.items() if path in ("lib/layers.py", "lib/model.py")})
    assert frequency(project, "lib.model.Model.forward") == "request assumed"
    assert frequency(project, "lib.layers.Attention.forward") == "request×layer assumed"


def test_library_functions_that_loop_over_a_users_data_are_assumed_to_serve(link: Any) -> None:
    source = """
        import torch

        def find_groups(embeddings, size=10):
            for start in range(0, len(embeddings), size):
                torch.topk(embeddings[start], 3)

        def mine(model, sentences, size=10):
            for sentence in sentences:
                model.encode(sentence)

        def quantise(model, bits=8):
            for module in model.modules():
                module.pack(bits)

        def _find_groups(embeddings):
            for row in embeddings:
                torch.topk(row, 3)

        def scale(scores):
            return scores.float()

        def convert_scores(scores):
            for row in scores:
                row.float()
        """
    project = link({"lib.py": source})
    assert frequency(project, "lib.find_groups") == "request assumed"
    assert frequency(project, "lib.mine") == "request assumed"
    for name in ("quantise", "_find_groups", "scale"):
        assert frequency(project, f"lib.{name}") == "unknown unknown", name
    assert frequency(project, "lib.convert_scores").startswith("setup")


def test_what_runs_without_gradients_serves_in_a_training_folder_too(link: Any) -> None:
    source = """
        import torch

        def evaluate(model, images):
            results = []
            with torch.no_grad():
                for image in images:
                    results.append(model(image))
            return results

        def loop(model, images):
            for image in images:
                model(image)
        """
    project = link({"pkg/__init__.py": "", "pkg/training/__init__.py": "", "pkg/training/zero.py": source})
    assert frequency(project, "pkg.training.zero.evaluate") == "request assumed"
    assert frequency(project, "pkg.training.zero.loop") == "unknown unknown"


@pytest.mark.parametrize("caller", ["tests/test_model.py", "benchmarks/speed.py", "train.py"])
def test_callers_that_do_not_heat(link: Any, caller: str) -> None:
    project = link(
        {
            "lib.py": "def helper(x): ...",
            caller: "from lib import helper\ndef run(prompts):\n    for prompt in prompts:\n        helper(prompt)\n",
        }
    )
    assert frequency(project, "lib.helper") == "unknown unknown"


def test_functions_that_train_do_not_heat(link: Any) -> None:
    source = """
        def work(x): ...
        def loop(loader, optimizer):
            for batch in loader:
                work(batch).backward()
                optimizer.step()
        def training_step(x):
            work(x)
        """
    assert frequency(link({"m.py": source}), "m.work") == "unknown unknown"


def test_scripts_and_their_loops(link: Any) -> None:
    source = """
        def main():
            model = load()
            for prompt in prompts:
                answer(model, prompt)
        def load():
            for layer in layers: read(layer)
        def read(layer): ...
        def answer(model, prompt): ...
        if __name__ == "__main__":
            main()
        """
    project = link({"run.py": source})
    assert frequency(project, "run.main") == "setup proven"
    assert frequency(project, "run.answer") == "request proven"
    assert frequency(project, "run.read") == "setup proven"


def test_what_a_script_runs_once_serves_as_if_nobody_called_it(link: Any) -> None:
    project = link({
        "net.py": """
            from torch import nn
            class Net(nn.Module):
                def __init__(self, n):
                    super().__init__()
                    self.layers = nn.ModuleList(nn.Linear(n, n) for _ in range(n))
                    self.prepare_tables(n)
                def prepare_tables(self, n): ...
                def forward(self, x):
                    return helper(x)
            def helper(x): return x
            """,
        "run.py": """
            from net import Net
            def main():
                first = Net(8)
                for wave in make():
                    first(wave)
            def make(): ...
            if __name__ == "__main__":
                main()
            """,
    })  # fmt: skip
    assert frequency(project, "run.main") == "setup proven"
    assert frequency(project, "net.Net.forward") == "request assumed"
    assert frequency(project, "net.helper") == "request assumed"
    assert frequency(project, "net.Net.prepare_tables") == "setup proven"
    assert frequency(project, "run.make") == "setup proven"


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


def test_lazily_made_state_and_cached_functions(link: Any) -> None:
    source = """
        import functools
        @app.get("/")
        def handler(self):
            if self._table is None:
                self._table = make_table()
            return lookup(), use(self._table)
        def make_table(): ...
        _SIGNS = {}
        @app.get("/signs")
        def signs(size, seen):
            if size not in _SIGNS:
                _SIGNS[size] = make_signs(size)
            if size not in seen:
                seen[size] = use(size)
            return _SIGNS[size]
        def make_signs(size): ...
        @functools.lru_cache
        def lookup(): return read()
        def read(): ...
        def use(table): ...
        @lru_cache_unless_export(maxsize=8)
        def table_for(size): return spread()
        def spread(): ...
        @with_kv_cache
        def plain(size): return work()
        def work(): ...
        @app.get("/tables")
        def tables(): return table_for(8), plain(8)
        """
    project = link({"h.py": source})
    assert frequency(project, "h.spread").startswith("setup")
    assert frequency(project, "h.work") == "request proven"
    assert frequency(project, "h.make_table").startswith("setup")
    assert frequency(project, "h.make_signs").startswith("setup")
    assert frequency(project, "h.read").startswith("setup")
    assert frequency(project, "h.use") == "request proven"


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


def test_state_that_is_made_on_the_first_call_or_anew_for_another_size(link: Any) -> None:
    source = """
        _TABLES = {}
        class Server:
            @app.get("/")
            def handler(self, device, size):
                tables = _TABLES.get(device)
                if tables is None:
                    with allowed():
                        _TABLES[device] = put_in_a_table(device)
                if not self.prepared_buffers:
                    self._prepare(size)
                if self.grid is None or self.grid.shape[0] < size:
                    self.grid = make_grid(size)
                if self.size != size:
                    self.size = size
                    fill(size)
                if self.mode != "fast":
                    slow(size)
                found = self.seen.get(size)
                if found is None:
                    self.seen_now = look(size)
                self.finish(size)
            def _prepare(self, size): prepare()
            def finish(self, size):
                if size in self.finished:
                    return
                finish(size)
                self.finished.add(size)
        def put_in_a_table(device): ...
        def prepare(): ...
        def make_grid(size): ...
        def fill(size): ...
        def slow(size): ...
        def look(size): ...
        def finish(size): ...
        """
    project = link({"h.py": source})
    for name in ("put_in_a_table", "prepare", "make_grid", "fill", "finish"):
        assert frequency(project, f"h.{name}").startswith("setup"), name
    for name in ("slow", "look"):
        assert frequency(project, f"h.{name}") == "request proven", name


def test_one_turn_of_a_loop_is_no_loop(link: Any) -> None:
    source = """
        @app.get("/")
        def handler(timesteps, layers, extra):
            for i, t in enumerate(timesteps):
                if i == len(timesteps) - 1 and extra:
                    last(t)
                if t == 0:
                    zero(t)
                for index in range(len(layers)):
                    if index == extra:
                        one(t)
                    every(t)
        def last(t): ...
        def zero(t): ...
        def one(t): ...
        def every(t): ...
        """
    project = link({"h.py": source})
    assert frequency(project, "h.last") == "request proven"
    assert frequency(project, "h.zero") == frequency(project, "h.one") == "request×step proven"
    assert frequency(project, "h.every") == "request×step×layer proven"


def test_adapters_that_are_taken_out_of_the_weights_are_taken_out_once(link: Any) -> None:
    source = """
        import torch
        class AdaptedLinear(torch.nn.Module):
            def forward(self, x):
                if self.disabled and self.merged:
                    self.unmerge()
                return self.base(x) + delta(x)
            def unmerge(self):
                restore(self.base)
        def delta(x): ...
        def restore(base): ...
        """
    project = link({"h.py": source})
    assert frequency(project, "h.delta") == "request×layer assumed"
    assert "layer" not in frequency(project, "h.restore")


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


def test_error_paths_do_not_heat(link: Any) -> None:
    source = """
        @app.get("/")
        def handler(x):
            if x < 0:
                raise ValueError(describe(x))
            try:
                fast(x)
            except RuntimeError:
                slow(x)
        def describe(x): ...
        def fast(x): ...
        def slow(x): ...
        """
    project = link({"h.py": source})
    assert frequency(project, "h.fast") == "request proven"
    assert frequency(project, "h.describe") == frequency(project, "h.slow") == "unknown unknown"


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


def test_recursion_ends_and_does_not_heat(link: Any) -> None:
    source = """
        @app.get("/")
        def handler(x):
            walk(x)
        def walk(node):
            for image in node.images:
                walk(image)
            visit(node)
        def visit(node): ...
        """
    project = link({"r.py": source})
    assert frequency(project, "r.visit") == "request proven"


def test_the_user_decides(link: Any) -> None:
    source = """
        # awp: hot
        def inner(x): return leaf(x)
        def leaf(x): ...
        @app.get("/")
        def handler(x): prepare(x); configured(x)
        def prepare(x):  # awp: setup
            for image in x: deeper(image)
        def deeper(x): ...
        def configured(x): ...
        """
    settings = Settings(entry_points=(("u.config*", "request×token×layer"),))
    project = link({"u.py": source}, settings)
    assert frequency(project, "u.inner") == "request×step proven"
    assert frequency(project, "u.leaf") == "request×step proven"
    assert frequency(project, "u.prepare") == "setup proven"
    assert frequency(project, "u.deeper").startswith("setup")
    assert frequency(project, "u.configured") == "request×token×layer proven"


def test_order_of_files_does_not_matter(link: Any) -> None:
    forward = link(LIBRARY)
    backward = link(dict(reversed(LIBRARY.items())))
    for name in forward.index.by_function:
        assert frequency(forward, name) == frequency(backward, name)
        assert chain(forward, name) == chain(backward, name)


def test_calls_reach(link: Any) -> None:
    project = link(LIBRARY)
    model = Asking("lib/model.py", facts_of(project, "lib/model.py"), from_project(project, "lib/model.py"), none)
    assert model.reached("Model.forward", 9, (11, 18)) == ("lib.layers.Block.forward",)
    app = Asking("app.py", facts_of(project, "app.py"), from_project(project, "app.py"), none)
    assert app.reached("answer", 9, (11, 11)) == ("lib.generate.generate",)
    assert app.reached("answer", 9, (1, 1)) == app.reached("nobody", 9, (11, 11)) == ()


def test_certainty_of_unknown(link: Any) -> None:
    project = link({"n.py": "def alone(): ..."})
    asking = Asking("n.py", facts_of(project, "n.py"), from_project(project, "n.py"), none)
    found = asking.entered("alone", 1)
    assert found.frequency.certainty is Certainty.UNKNOWN and str(found.frequency) == "unknown"
    assert asking.entered("nobody", 7).frequency.known is False


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
            return quantise(x)

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
@pytest.mark.parametrize(("called", "heated"), [("{beside}", False), ("forward", True), ("other", True)])
def test_forward_beside_what_others_call_is_for_training(link: Any, beside: str, called: str, heated: bool) -> None:
    linked = link({"pkg/a.py": CODEC.format(beside=beside, called=called.format(beside=beside))})
    assert (linked.frequencies.reach[linked.index.by_function["pkg.a.commitment"]] is not None) is heated
