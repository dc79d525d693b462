"""Values across functions, classes and files."""

from __future__ import annotations

import ast
import itertools
import pickle
import textwrap

import pytest

from awp_lint.detector.config import Settings
from awp_lint.detector.semantics.extract import extract
from awp_lint.detector.semantics.index import IndexedFile
from awp_lint.detector.semantics.linked import Linked
from awp_lint.detector.semantics.names import FileNames
from awp_lint.detector.semantics.summaries import FileValues, link_values, summarise_file
from awp_lint.detector.semantics.values import Certainty, Device, DTypeClass, Kind, Value

TORCH = "import torch\nfrom torch import nn\n"


def parts(files: dict[str, str]) -> list[tuple[IndexedFile, FileValues]]:
    """Facts and summaries of modules given as ``{"pkg.mod": source}``."""
    made = []
    for module, source in files.items():
        text = textwrap.dedent(source)
        tree = ast.parse(text)
        facts = extract(tree, text)
        path = module.replace(".", "/") + ".py"
        values = summarise_file(tree, FileNames(facts, module, False))
        made.append((IndexedFile(path, path, module, False, facts), values))
    return made


def project(**files: str) -> Linked:
    """A linked project; ``pkg__mod`` stands for ``pkg.mod``."""
    made = parts({name.replace("__", "."): source for name, source in files.items()})
    return Linked([file for file, _ in made], [values for _, values in made], Settings())


def brief(value: Value | None) -> tuple[str, str] | None:
    return None if value is None else (value.kind.value, value.device.value)


MODEL = (
    TORCH
    + """
class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.scale = dim ** -0.5
        self.register_buffer("table", torch.arange(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.offset = torch.ones(1)
        self.cached = None
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(2)])

    def helper(self, x):
        return self.proj(x) * self.scale

    def forward(self, hidden_states):
        return self.helper(hidden_states), hidden_states.cpu()

    @property
    def limit(self):
        return self.bias.max()


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attention = Attention(dim)

    def forward(self, x):
        out, host = self.attention(x)
        return out

    def both(self, x):
        return self.attention(x)
"""
)


def test_attributes_of_modules() -> None:
    linked = project(m=MODEL)
    assert brief(linked.attribute("m.Attention", "proj")) == ("module", "ambient")
    assert brief(linked.attribute("m.Attention", "bias")) == ("tensor", "ambient")
    assert brief(linked.attribute("m.Attention", "table")) == ("tensor", "ambient")
    assert brief(linked.attribute("m.Attention", "offset")) == ("tensor", "host")
    assert brief(linked.attribute("m.Attention", "limit")) == ("tensor", "ambient")
    scale = linked.attribute("m.Attention", "scale")
    assert scale is None or scale.kind is Kind.SCALAR
    layers = linked.attribute("m.Attention", "layers")
    assert layers is not None and layers.element is not None and layers.element.cls == "torch.nn.Linear"
    attention = linked.attribute("m.Model", "attention")
    assert attention is not None and attention.cls == "m.Attention" and attention.device is Device.AMBIENT
    assert linked.attribute("m.Attention", "nothing") is None


def test_returns_through_methods_and_modules() -> None:
    linked = project(m=MODEL)
    assert brief(linked.returns("m.Attention.helper")) == ("tensor", "ambient")
    pair = linked.returns("m.Attention.forward")
    assert pair is not None and pair.items is not None
    assert [item.device for item in pair.items] == [Device.AMBIENT, Device.HOST]
    assert brief(linked.returns("m.Model.forward")) == ("tensor", "ambient")
    assert linked.returns("m.Model.both") == pair


def test_returns_through_files() -> None:
    linked = project(
        a__ops=TORCH
        + "def on_device(n):\n    return torch.zeros(n, device='cuda')\ndef read(t):\n    return t.cpu()\n",
        b="from a.ops import on_device as make, read\ndef f():\n    return make(3)\ndef g():\n    return read(f())\n",
        c="import a.ops\ndef f():\n    return a.ops.on_device(2) + 1\n",
    )
    value = linked.returns("b.f")
    assert value is not None and value.device is Device.ACCELERATOR and value.certainty is Certainty.PROVEN
    assert brief(linked.returns("b.g")) == ("tensor", "host")
    assert brief(linked.returns("c.f")) == ("tensor", "accelerator")


def test_parameters_from_call_sites() -> None:
    linked = project(
        m=TORCH
        + """
def helper(values, count, late=None):
    return values

def one(x: torch.Tensor):
    return helper(x.cpu(), 3)

def two(x: torch.Tensor):
    return helper(x.cpu(), late=x, count=4)
"""
    )
    assert brief(linked.parameter("m.helper", "values")) == ("tensor", "host")
    count = linked.parameter("m.helper", "count")
    assert count is not None and count.kind is Kind.SCALAR
    assert brief(linked.parameter("m.helper", "late")) == ("tensor", "ambient")
    assert linked.parameter("m.one", "x") is None
    assert brief(linked.returns("m.helper")) == ("tensor", "host")


def test_parameters_with_call_sites_that_differ_are_unknown() -> None:
    linked = project(
        m=TORCH + "def h(v):\n    return v\ndef a(x: torch.Tensor):\n    h(x)\n    h(3)\n",
    )
    assert linked.parameter("m.h", "v") is None


def test_attributes_by_inheritance_and_annotation() -> None:
    linked = project(
        base=TORCH + "class Base:\n    limit: int = 3\n    def __init__(self):\n        self.rows = torch.zeros(3)\n",
        data="import torch\nfrom dataclasses import dataclass\n@dataclass\nclass Output:\n    logits: torch.Tensor\n"
        "    past: tuple[torch.Tensor, ...] | None = None\n    size: int = 0\n",
        m="from base import Base\nfrom data import Output\nclass Sub(Base):\n    pass\n"
        "def f(x):\n    return Output(logits=x)\ndef g(x):\n    return f(x).logits\n",
    )
    assert brief(linked.attribute("m.Sub", "rows")) == ("tensor", "host")
    limit = linked.attribute("m.Sub", "limit")
    assert limit is not None and limit.kind is Kind.SCALAR and limit.dtype is DTypeClass.INT
    assert brief(linked.attribute("data.Output", "logits")) == ("tensor", "ambient")
    past = linked.attribute("data.Output", "past")
    assert past is not None and past.element is not None and past.element.on_device
    assert brief(linked.returns("m.g")) == ("tensor", "ambient")


def test_later_assignment_beats_the_placeholder_of_set_up() -> None:
    linked = project(
        m="import numpy as np\n"
        + TORCH
        + """
class Scheduler:
    def __init__(self):
        self.timesteps = torch.from_numpy(np.arange(3))
        self.sigmas = torch.zeros(3)
    def set_timesteps(self, n, device: torch.device):
        self.timesteps = torch.arange(n).to(device)
        self.sigmas = torch.ones(n)
        self.sigmas = self.sigmas.to("cpu")
"""
    )
    timesteps = linked.attribute("m.Scheduler", "timesteps")
    assert timesteps is not None and timesteps.device is Device.AMBIENT and timesteps.certainty is Certainty.ASSUMED
    assert brief(linked.attribute("m.Scheduler", "sigmas")) == ("tensor", "host")


def test_globals_and_generators() -> None:
    linked = project(
        m=TORCH + "TABLE = torch.arange(4)\nNAMES = ['a', 'b']\ndef f(x: torch.Tensor):\n    for row in x:\n"
        "        yield row\n",
        n="from m import TABLE, f\ndef g(x: torch.Tensor):\n    return [r for r in f(x)], TABLE\n",
    )
    table = linked.global_value("m.TABLE")
    assert table is not None and (table.device, table.rank) == (Device.HOST, 1)
    value = linked.returns("m.f")
    assert value is not None and value.kind is Kind.ITERATOR and value.element is not None and value.element.on_device
    both = linked.returns("n.g")
    assert both is not None and both.items is not None
    assert both.items[0].element is not None and both.items[0].element.on_device
    assert both.items[1].device is Device.HOST


def test_recursion_and_cycles_end() -> None:
    linked = project(
        a=TORCH
        + "from b import pong\ndef ping(x: torch.Tensor, n):\n    if n:\n        return pong(x, n - 1)\n    return x\n",
        b="from a import ping\ndef pong(x, n):\n    return ping(x, n)\n",
        c="class A(B):\n    pass\nclass B(A):\n    pass\ndef f():\n    return f()\n",
    )
    assert brief(linked.returns("a.ping")) == ("tensor", "ambient")
    assert brief(linked.returns("b.pong")) == ("tensor", "ambient")
    assert linked.returns("c.f") is None
    assert linked.attribute("c.A", "x") is None


def test_answers_do_not_depend_on_the_order_of_files_or_questions() -> None:
    files = {
        "a": TORCH
        + "from b import g\ndef f(x):\n    return g(x)\nclass C:\n    def __init__(self, v):\n        self.v = f(v)\n",
        "b": "from c import h\ndef g(x):\n    return h(x)\n",
        "c": TORCH + "from a import f, C\ndef h(x):\n    if x:\n        return f(x)\n    return C(x).v\n"
        "def start():\n    return h(torch.ones(2, device='cuda'))\n",
    }
    questions = [
        *(("returns", (name,)) for name in ("a.f", "b.g", "c.h", "c.start")),
        ("attribute", ("a.C", "v")),
        *(("parameter", (name, "x")) for name in ("a.f", "b.g", "c.h")),
    ]
    answers = set()
    for order in itertools.permutations(files):
        made = parts({name: files[name] for name in order})
        for asked in (questions, questions[::-1], questions[3:] + questions[:3]):
            linked = Linked([file for file, _ in made], [values for _, values in made], Settings())
            found = {question: getattr(linked, question[0])(*question[1]) for question in asked}
            answers.add(tuple(found[question] for question in questions))
    assert len(answers) == 1


def test_summary_is_small_plain_and_the_same_each_time() -> None:
    (_, first), (_, second) = parts({"m": MODEL}) + parts({"m": MODEL})
    assert first == second
    assert pickle.loads(pickle.dumps(first)) == first
    assert len(first.packed) < len(MODEL)
    body = first.unpack()
    assert set(body.classes) == {"Attention", "Model"}
    assert body.functions["Attention.helper"].parameters == ("x",)


@pytest.mark.parametrize(
    "source", ["", "x = 1\n", "class A: pass\n", "def f(): pass\n", "lambda: 0\n", "async def f():\n    pass\n"]
)
def test_small_files(source: str) -> None:
    made = parts({"m": source})
    linked = link_values([values for _, values in made], project(m=source))
    assert linked.returns("m.f") is None or linked.returns("m.f") is not None
    assert linked.global_value("other.thing") is None


def test_fields_of_dataclasses_hold_what_the_class_is_made_with() -> None:
    state = """
    from dataclasses import dataclass

    @dataclass
    class State:
        seen: torch.Tensor
        score: torch.Tensor

        @classmethod
        def create(cls, rows, score):
            return cls(seen=torch.zeros(rows, 8, dtype=torch.bool), score=score)
    """
    linked = project(state=TORCH + textwrap.dedent(state))
    seen = linked.attribute("state.State", "seen")
    assert seen is not None and (seen.kind, seen.dtype) == (Kind.TENSOR, DTypeClass.BOOL)
    user = "from state import State\n\ndef other(x):\n    return State(seen=x.long(), score=x)\n"
    linked = project(state=TORCH + textwrap.dedent(state), user=user)
    seen = linked.attribute("state.State", "seen")
    assert seen is not None and (seen.kind, seen.dtype) == (Kind.TENSOR, DTypeClass.UNKNOWN)
