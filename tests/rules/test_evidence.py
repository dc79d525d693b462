"""What rules ask of the code around a candidate: who compiles it, where memory lies, what passes hand on."""

from __future__ import annotations

import ast
import textwrap

import pytest

from awp_lint.detector.semantics.model import FileModel, view_of_source
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.batching.calls import carries_state, in_pieces
from awp_lint.rules.fusion.context import compiled_class, traced_branch, without_library
from awp_lint.rules.memory.pages import kept_once, pageable
from awp_lint.rules.precision.modes import float32_on_purpose


def model(code: str) -> FileModel:
    return view_of_source(textwrap.dedent(code), path="code.py")


def function(file: FileModel, name: str) -> FunctionView:
    return next(view for view in file.functions() if view.qualname == name)


def call(view: FunctionView, code: str) -> ast.Call:
    return next(node for node in view.nodes(ast.Call) if isinstance(node, ast.Call) and ast.unparse(node) == code)


ENGINE = """
    from engine import support_torch_compile

    class Layer:
        def forward(self, x):
            return x + 1

    class Head:
        def forward(self, x):
            return x * 2

    class Stack:
        def __init__(self):
            self.layers = [Layer() for _ in range(4)]

        def forward(self, x):
            return x

    @support_torch_compile
    class Model:
        def __init__(self):
            self.stack = Stack()

        def forward(self, x):
            return self.stack(x)
    """


@pytest.mark.parametrize(("name", "inside"), [("Layer", True), ("Stack", True), ("Model", True), ("Head", False)])
def test_parts_of_a_compiled_class_are_compiled(name: str, inside: bool) -> None:
    file = model(ENGINE)
    assert compiled_class(function(file, f"{name}.forward"), file) is inside


def test_constructors_that_a_scan_leaves_out_still_tell_what_a_class_is_made_of() -> None:
    file = model(ENGINE)
    file.tree = ast.parse(
        textwrap.dedent(ENGINE)
        .replace("self.layers = [Layer() for _ in range(4)]", "pass")
        .replace("self.stack = Stack()", "pass")
    )
    assert compiled_class(function(file, "Layer.forward"), file)


def test_the_side_of_a_switch_decides() -> None:
    file = model("""
        def attend(q, cache):
            if _HAS_FLASH_ATTN:
                fast(q)
            else:
                slow(q)
            if not is_xformers_available():
                missing(q)
            if cache.is_compileable:
                traced(q)
            if not cache.is_compileable:
                untraced(q)
            if is_torch_npu_available():
                npu(q)
            else:
                elsewhere(q)
            if HAS_TRITON:
                return q
            behind(q)
        """)
    view = function(file, "attend")
    calls = ("fast(q)", "slow(q)", "missing(q)", "elsewhere(q)", "behind(q)")
    assert [without_library(view, call(view, code)) for code in calls] == [False, True, True, False, True]
    assert traced_branch(view, call(view, "traced(q)"))
    assert not traced_branch(view, call(view, "untraced(q)"))


@pytest.mark.parametrize(
    ("code", "plain"),
    [
        ("torch.tensor(lengths)", True),
        ("torch.tensor(lengths, pin_memory=True)", False),
        ("torch.from_numpy(array)[:4]", True),
        ("torch.arange(8) + 1", True),
        ("torch.arange(8).unsqueeze(0).int()", True),
        ("other.lengths_cpu[:4]", False),
        ("other.lengths_cpu.int()", False),
        ("given", False),
        ("self.plain[:4]", True),
        ("self.pinned[:4]", False),
        ("self.mixed[:4]", False),
        ("device_tensor.cpu()", True),
        ("moved", True),
        ("device_tensor.to('cpu', non_blocking=True)", False),
    ],
)
def test_pageable_memory_wants_evidence(code: str, plain: bool) -> None:
    file = model(f"""
        import torch

        class Runner:
            def __init__(self, pin, other):
                self.plain = torch.zeros(8, dtype=torch.int32)
                self.pinned = torch.zeros(8, dtype=torch.int32, pin_memory=pin)
                self.mixed = torch.zeros(8) if other is None else other.buffer
                self.mixed = other.buffer

            def run(self, lengths: list, array, given: torch.Tensor, other, device_tensor: torch.Tensor):
                moved = torch.arange(8) / 8
                use({code})
                moved = moved.to("cuda")
        """)
    view = function(file, "Runner.run")
    used = next(node for node in view.nodes(ast.Call) if ast.unparse(node).startswith("use("))
    assert isinstance(used, ast.Call)
    assert pageable(used.args[0], view, file) is plain


def test_a_copy_that_its_own_attribute_guards_is_made_once() -> None:
    file = model("""
        def forward(self, x):
            if self.table.shape[0] != x.shape[1]:
                self.table = make(x).to(x.device)
            if x.shape[0] > 1:
                self.other = make(x).to(x.device)
            local = make(x).to(x.device)
        """)
    view = function(file, "forward")
    moves = [node for node in view.nodes(ast.Call) if ast.unparse(node) == "make(x).to(x.device)"]
    assert [kept_once(node, view) for node in moves] == [True, False, False]


@pytest.mark.parametrize(
    ("body", "carried"),
    [
        ("state = model(torch.cat([item, state]))", True),
        ("mixed = item + state\n        out = model(mixed)\n        state = out[:1]", True),
        ("out = model(item, feat_cache=caches)", True),
        ("out = model(item, use_cache=False)", False),
        ("texts = clean(item)\n        out = model(texts)\n        outs.append(out)", False),
        ("out = model(item)\n        total = total + out", False),
    ],
)
def test_passes_that_hand_something_on(body: str, carried: bool) -> None:
    file = model(f"""
def run(model, items, state, caches, outs, total):
    for item in items:
        {body}
""")
    view = function(file, "run")
    (loop,) = view.nodes(ast.For)
    asked = next(node for node in view.nodes(ast.Call) if ast.unparse(node).startswith("model("))
    assert isinstance(asked, ast.Call)
    assert carries_state(asked, loop) is carried


@pytest.mark.parametrize(
    ("name", "header", "cut"),
    [
        ("encode", "for text in texts", False),
        ("encode", "for t in self.progress_bar(steps)", True),
        ("encode", "for tile in tiles", True),
        ("tiled_encode", "for part in parts", True),
        ("encode", "for frame in frames", False),
    ],
)
def test_steps_and_cuts_are_no_items(name: str, header: str, cut: bool) -> None:
    file = model(f"""
        def {name}(self, texts, steps, tiles, parts, frames):
            {header}:
                pass
        """)
    view = function(file, name)
    (loop,) = view.nodes(ast.For)
    assert isinstance(loop, ast.For)
    assert in_pieces(view, loop) is cut


def test_float32_that_somebody_wants() -> None:
    file = model("""
        import torch

        class Float32Linear:
            def forward(self, x):
                return first(x)

        class Linear:
            def forward(self, x):
                with torch.autocast("cuda", enabled=False):
                    second(x)
                with torch.autocast("cuda"):
                    third(x)
        """)
    views = {view.qualname: view for view in file.functions()}
    named, plain = views["Float32Linear.forward"], views["Linear.forward"]
    assert float32_on_purpose(named, call(named, "first(x)"))
    assert [float32_on_purpose(plain, call(plain, code)) for code in ("second(x)", "third(x)")] == [True, False]
