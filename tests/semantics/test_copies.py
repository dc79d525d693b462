"""Functions that read the same give the same facts and values as when each is looked at on its own."""

from __future__ import annotations

import ast
import gc
import itertools
import textwrap
import weakref

import pytest

from awp_lint.detector.semantics.copies import Copies, first_line, stretches
from awp_lint.detector.semantics.extract import extract
from awp_lint.detector.semantics.facts import FileFacts
from awp_lint.detector.semantics.names import FileNames
from awp_lint.detector.semantics.summaries import FileValues, summarise_file

_ATTENTION = '''
class {cls}Attention(nn.Module):
    def __init__(self, config, layer_idx):
        super().__init__()
        self.config = config
        self.q_proj = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = Norm(config.hidden_size)
        self.hooks = []

    def forward(self, hidden_states: torch.Tensor, past=None, **kwargs) -> torch.Tensor:
        """Attends.

        Args:
            past: what came before
        """
        for step in range(hidden_states.shape[1]):
            if past is not None and self.config.use_cache:
                hidden_states = past.update(self.q_proj(hidden_states), step)
        self.hooks.append(self._post)
        return rotate(self.norm(hidden_states), past)

    def _post(self, x):
        return x.cpu()
    # a comment behind it


def rotate(x, past):
    return x * past.cos if past else x
'''
_HEAD = "import torch\nfrom torch import nn\n"
_TEXTS = {
    "pkg.models.llama.modeling_llama": _HEAD + "class Norm(nn.Module): pass\n" + _ATTENTION.format(cls="Llama"),
    "pkg.models.mistral.modeling_mistral": _HEAD + "\n\nfrom ..norms import Norm\n" + _ATTENTION.format(cls="Mistral"),
    "pkg.models.qwen.modeling_qwen": "from torch.nn import Norm\n" + _HEAD + _ATTENTION.format(cls="Qwen"),
    # `past` and `nn` mean something else, and two classes hold the same methods
    "pkg.models.other.modeling_other": "import torch\nfrom . import nn\nimport numpy as Norm\n"
    + _ATTENTION.format(cls="One")
    + _ATTENTION.format(cls="Another"),
    # a class without the method that the others hand on
    "pkg.models.less.modeling_less": _HEAD
    + _ATTENTION.format(cls="Less").replace("    def _post(self, x):\n        return x.cpu()\n", ""),
    # in a string, in a condition and beside code that does not parse as the shorter text would
    "pkg.models.texts.texts": _HEAD + "TEXT = '''" + _ATTENTION.format(cls="Text").replace("'''", "") + "'''\n",
    "pkg.models.maybe.maybe": _HEAD
    + "if torch:\n    def _post(self, x):\n        return x.cpu()\n\n"
    + _ATTENTION.format(cls="Maybe"),
    # names of the own class and of the module, attributes that were parameters before, functions in functions
    "pkg.own.a": _HEAD
    + textwrap.dedent(
        """
        class A(nn.Module):
            def __init__(self, part, size):
                self.part = part
                self.inner = A
                self.made = A.build(size)
                self.call = lambda x: x + size

            def reset(self):
                self.part = 3
                self.size = 3

            @torch.no_grad()
            def run(self, x: "A"):
                with torch.no_grad(), guard():
                    return self.part(x), self.inner(x), size(x)

            def deep(self):
                def inner(y):
                    return self.part(y)
                return inner
        """
    ),
}
_TEXTS["pkg.own.b"] = _TEXTS["pkg.own.a"].replace("class A", "class B")
_TEXTS["pkg.own.c"] = (
    _TEXTS["pkg.own.a"].replace("self.part = part", "self.size = size").replace("import torch", "import os as torch")
)
_TEXTS["pkg.own.e"] = _TEXTS["pkg.own.a"].replace("class A", "class RandomErasing")
_TEXTS["pkg.own.d"] = "from tools import guard\nfrom torch import size\n" + _TEXTS["pkg.own.a"]


def _looked_at(module: str, text: str, copies: Copies | None) -> tuple[FileFacts, FileValues]:
    copied = None if copies is None else copies.beside(text, ast.parse)
    tree = ast.parse(text) if copied is None else copied.tree()
    facts = extract(tree, text, copied)
    return facts, summarise_file(tree, FileNames(facts, module, False), copied=copied)


def _check(order: list[str]) -> Copies:
    copies = Copies()
    for module in order:
        alone, together = _looked_at(module, _TEXTS[module], None), _looked_at(module, _TEXTS[module], copies)
        assert together[0] == alone[0], module
        assert together[1].unpack() == alone[1].unpack(), module
        assert together[1] == alone[1], module
    return copies


@pytest.mark.parametrize("first", sorted(_TEXTS))
def test_copies_say_what_the_functions_say_on_their_own(first: str) -> None:
    others = [module for module in _TEXTS if module != first]
    _check([first, *others])
    _check([first, *reversed(others), first])


def test_every_pair_of_files() -> None:
    for one, other in itertools.permutations(_TEXTS, 2):
        _check([one, other])


def test_bodies_of_known_functions_are_not_parsed() -> None:
    copies = _check(["pkg.models.llama.modeling_llama"])
    parsed: list[str] = []

    def parse(text: str) -> ast.Module:
        parsed.append(text)
        return ast.parse(text)

    text = _TEXTS["pkg.models.mistral.modeling_mistral"]
    copied = copies.beside(text, parse)
    facts = extract(copied.tree(), text, copied)
    (shorter,) = parsed
    assert "q_proj" not in shorter and "def forward" in shorter
    assert len(shorter.split("\n")) == len(text.split("\n"))
    forward = next(f for f in facts.functions if f.qualname == "MistralAttention.forward")
    first = text[: text.index("def forward")].count("\n") + 1
    assert forward.header == (first, first) and forward.body == (first + 1, first + 10, 8)
    assert {call.line for call in forward.calls} == {first + 8, first + 9, first + 10}


def test_trees_are_freed_without_the_help_of_the_collector() -> None:
    copies = _check(["pkg.models.llama.modeling_llama"])
    text = _TEXTS["pkg.models.mistral.modeling_mistral"] + _TEXTS["pkg.own.a"]
    gc.disable()
    try:
        copied = copies.beside(text, ast.parse)
        tree = copied.tree()
        gone = weakref.ref(tree.body[-1])
        facts = extract(tree, text, copied)
        summarise_file(tree, FileNames(facts, "m", False), copied=copied)
        del copied, tree
        assert gone() is None
    finally:
        gc.enable()


def test_what_is_no_function_is_left() -> None:
    text = (
        "class A:\n    def f(self):\n        return '''\n    def g(): pass\n'''\n\n    # end\n\n"
        "@b\n@c(\n    1\n)\nasync def h():\n    pass\n"
    )
    tree = ast.parse(text)
    found = stretches(text)
    assert (found[9].last, found[9].indent) == (14, 0)
    copied = Copies().beside(text, ast.parse)
    cls, last = tree.body
    assert isinstance(cls, ast.ClassDef) and isinstance(last, ast.AsyncFunctionDef)
    method = cls.body[0]
    assert isinstance(method, ast.FunctionDef)
    assert first_line(last) == 9 and copied.of(last, False) is not None
    assert copied.of(method, True) is None  # its lines look as if it ended in the string
    assert stretches(text.replace("\n", "\r\n")) == {}


def test_a_file_that_cannot_be_parsed_is_told_by_its_own_text() -> None:
    copies = _check(["pkg.models.llama.modeling_llama"])
    broken = _TEXTS["pkg.models.llama.modeling_llama"] + "\nx = (\n"
    with pytest.raises(SyntaxError) as told:
        copies.beside(broken, ast.parse).tree()
    with pytest.raises(SyntaxError) as alone:
        ast.parse(broken)
    assert (told.value.msg, told.value.lineno) == (alone.value.msg, alone.value.lineno)
