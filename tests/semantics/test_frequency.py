"""How often functions run: entry points, loops, callers across files, and what is done once."""

from __future__ import annotations

from typing import Any

import pytest
from heated import LIBRARY, chain, facts_of, frequency, none

from awp_lint.detector.config import Settings
from awp_lint.detector.semantics.asking import Asking, from_project
from awp_lint.detector.semantics.values import Certainty


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

        def paint(boxes: torch.Tensor, size: int):
            for box in boxes:
                torch.topk(box, size)

        def torch2other(model, example: torch.Tensor):
            for name in model.names:
                torch.topk(example, name)

        def draw_boxes(boxes: torch.Tensor, size: int):
            for box in boxes:
                torch.topk(box, size)
        """
    project = link({"lib.py": source})
    assert frequency(project, "lib.find_groups") == "request assumed"
    assert frequency(project, "lib.paint") == "request assumed"
    assert frequency(project, "lib.mine") == "request assumed"
    for name in ("quantise", "_find_groups", "scale", "torch2other", "draw_boxes"):
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
        @app.get("/indices")
        def indices(self):
            if not hasattr(self, "_indices"):
                self.register_buffer("_indices", make_indices())
            return self._indices
        def make_indices(): ...
        """
    project = link({"h.py": source})
    assert frequency(project, "h.spread").startswith("setup")
    assert frequency(project, "h.work") == "request proven"
    assert frequency(project, "h.make_table").startswith("setup")
    assert frequency(project, "h.make_signs").startswith("setup")
    assert frequency(project, "h.make_indices").startswith("setup")
    assert frequency(project, "h.read").startswith("setup")
    assert frequency(project, "h.use") == "request proven"


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


def test_certainty_of_unknown(link: Any) -> None:
    project = link({"n.py": "def alone(): ..."})
    asking = Asking("n.py", facts_of(project, "n.py"), from_project(project, "n.py"), none)
    found = asking.entered("alone", 1)
    assert found.frequency.certainty is Certainty.UNKNOWN and str(found.frequency) == "unknown"
    assert asking.entered("nobody", 7).frequency.known is False
