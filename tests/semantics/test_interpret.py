"""Values inside one function: devices, ranks, branches, loops."""

from __future__ import annotations

import ast

import pytest

from awp_lint.detector.semantics.interpret import Table, interpret
from awp_lint.detector.semantics.values import Certainty, Device, DTypeClass, Kind, Value
from awp_lint.detector.semantics.view import Target


class FileNames:
    """Names of one file: its imports and top-level definitions."""

    def __init__(self, tree: ast.Module, module: str = "app") -> None:
        self.module = module
        self.table: dict[str, str] = {}
        for node in tree.body:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    root = alias.name.partition(".")[0]
                    self.table[alias.asname or root] = alias.name if alias.asname else root
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self.table[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.table[node.name] = f"{module}.{node.name}"

    def qualified(self, node: ast.expr) -> str | None:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.table:
            return None
        return ".".join([self.table[node.id], *reversed(parts)])


class Nothing:
    """An outside that knows nothing."""

    def canonical(self, dotted: str) -> str:
        return dotted

    def is_function(self, dotted: str) -> bool:
        return False

    def is_class(self, dotted: str) -> bool:
        return False

    def bases(self, cls: str) -> frozenset[str]:
        return frozenset({cls})

    def method(self, cls: str, name: str) -> str | None:
        return None

    def returns(self, function: str) -> Value | None:
        return None

    def attribute(self, cls: str, name: str) -> Value | None:
        return None

    def parameter(self, function: str, name: str) -> Value | None:
        return None

    def global_value(self, dotted: str) -> Value | None:
        return None


PRELUDE = "import torch\nimport torch.nn.functional as F\nimport numpy as np\nfrom torch import nn, Tensor\n"


def run(body: str, target: Target | None = None) -> tuple[Table, ast.FunctionDef]:
    """Interpret the only function of the source."""
    tree = ast.parse(PRELUDE + body)
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    return interpret(function, FileNames(tree), Nothing(), qualname=function.name, target=target), function


def result(body: str, target: Target | None = None) -> Value:
    """What the only function of the source returns."""
    return run(body, target)[0].returns


def describe(value: Value) -> tuple[str, str, str, int | None]:
    return value.kind.value, value.device.value, value.dtype.value, value.rank


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("torch.zeros(2, 3)", ("tensor", "host", "float", 2)),
        ("torch.zeros(2, 3, device='cuda')", ("tensor", "accelerator", "float", 2)),
        ("torch.zeros((2, 3), dtype=torch.long, device='cuda:1')", ("tensor", "accelerator", "int", 2)),
        ("torch.ones(4, device='cpu')", ("tensor", "host", "float", 1)),
        ("torch.arange(4, device=x.device)", ("tensor", "ambient", "int", 1)),
        ("torch.tensor([1, 2])", ("tensor", "host", "int", 1)),
        ("torch.tensor(1.0, device=x.device)", ("tensor", "ambient", "float", 0)),
        ("torch.full((2,), 1.5, device='cuda')", ("tensor", "accelerator", "float", 1)),
        ("x.cuda()", ("tensor", "accelerator", "unknown", None)),
        ("x.cpu()", ("tensor", "host", "unknown", None)),
        ("x.to('cpu')", ("tensor", "host", "unknown", None)),
        ("x.to('cuda', torch.float16)", ("tensor", "accelerator", "float", None)),
        ("torch.zeros(2).to(x.device)", ("tensor", "ambient", "float", 1)),
        ("torch.zeros(2).to(x)", ("tensor", "ambient", "unknown", 1)),
        ("torch.zeros_like(x)", ("tensor", "ambient", "unknown", None)),
        ("x > 0", ("tensor", "ambient", "bool", None)),
        ("x == None", ("scalar", "unknown", "bool", None)),
        ("torch.tensor([t != 0 for t in torch.zeros(2).tolist()])", ("tensor", "host", "bool", 1)),
        ("torch.tensor([[t != 0 for t in row] for row in torch.zeros(2, 3).tolist()])", ("tensor", "host", "bool", 2)),
        ("torch.tensor([[t != 0 for t in row] for row in x.tolist()])", ("tensor", "host", "bool", 2)),
        ("torch.tensor([[t for t in row] for row in x.tolist()])", ("tensor", "host", "unknown", 2)),
        ("x is None", ("scalar", "unknown", "bool", None)),
        ("x.sum()", ("tensor", "ambient", "unknown", 0)),
        ("(x > 0).any()", ("tensor", "ambient", "bool", 0)),
        ("x.max(dim=-1)[1]", ("tensor", "ambient", "int", None)),
        ("x.topk(3).values", ("tensor", "ambient", "unknown", None)),
        ("x.argmax(-1)", ("tensor", "ambient", "int", None)),
        ("x[x > 0]", ("tensor", "ambient", "unknown", None)),
        ("torch.zeros(3, device='cuda')[0]", ("tensor", "accelerator", "float", 0)),
        ("torch.zeros(3, 4, device='cuda')[:, 0]", ("tensor", "accelerator", "float", 1)),
        ("torch.zeros(3, 4)[None]", ("tensor", "host", "float", 3)),
        ("x.shape", ("sequence", "unknown", "unknown", None)),
        ("x.shape[0]", ("scalar", "unknown", "int", None)),
        ("x.size(0)", ("scalar", "unknown", "int", None)),
        ("x.dim()", ("scalar", "unknown", "int", None)),
        ("len(x)", ("scalar", "unknown", "int", None)),
        ("x.numel()", ("scalar", "unknown", "int", None)),
        ("x.is_cuda", ("scalar", "unknown", "bool", None)),
        ("x.item()", ("scalar", "unknown", "unknown", None)),
        ("(x > 0).item()", ("scalar", "unknown", "bool", None)),
        ("x.tolist()", ("sequence", "unknown", "unknown", None)),
        ("x.cpu().numpy()", ("ndarray", "host", "unknown", None)),
        ("np.asarray(x)", ("ndarray", "host", "unknown", None)),
        ("torch.from_numpy(np.zeros(3))", ("tensor", "host", "unknown", None)),
        ("F.softmax(x, -1)", ("tensor", "ambient", "float", None)),
        ("x.nonzero()", ("tensor", "ambient", "int", 2)),
        ("torch.cat([x, torch.zeros(2, device=x.device)])", ("tensor", "ambient", "float", None)),
        ("[t for t in x]", ("sequence", "unknown", "unknown", None)),
        ("sum(t for t in x)", ("tensor", "ambient", "unknown", None)),
        ("max(x)", ("tensor", "ambient", "unknown", None)),
        ("int(x)", ("scalar", "unknown", "int", None)),
        ("x.device", ("device", "ambient", "unknown", None)),
        ("x.data_ptr()", ("scalar", "unknown", "int", None)),
        ("(lambda: x)()", ("tensor", "ambient", "unknown", None)),
        ("f'{x}'", ("string", "unknown", "unknown", None)),
    ],
)
def test_expression(expression: str, expected: tuple[str, str, str, int | None]) -> None:
    value = result(f"def f(x: torch.Tensor):\n    return {expression}\n")
    assert describe(value) == expected


def test_literal_device_is_proven_and_annotated_is_assumed() -> None:
    assert result("def f():\n    return torch.zeros(2, device='cuda')\n").certainty is Certainty.PROVEN
    assert result("def f(x: Tensor):\n    return x + 1\n").certainty is Certainty.ASSUMED


def test_device_variable_follows_availability_unless_target_is_cpu() -> None:
    body = (
        "def f():\n"
        "    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
        "    return torch.ones(2, device=device)\n"
    )
    assert result(body).device is Device.ACCELERATOR
    assert result(body, Target(device="cpu")).device is Device.HOST
    assert result("def f(x: Tensor):\n    return x\n", Target(device="cpu")).device is Device.HOST


def test_branches_join() -> None:
    assert result("def f(c, x: Tensor):\n    if c:\n        x = x.cpu()\n    return x\n").device is Device.UNKNOWN
    body = "def f(c, x: Tensor):\n    if c:\n        x = None\n    return x\n"
    assert result(body).on_device
    body = "def f(c, x: Tensor):\n    if c:\n        x = x.tolist()\n        raise ValueError\n    return x\n"
    assert result(body).on_device


def test_loop_reaches_a_fixpoint() -> None:
    body = (
        "def f(x: Tensor, n: int):\n"
        "    y = 0\n"
        "    for i in range(n):\n"
        "        z = y\n"
        "        y = x.sum()\n"
        "    return y\n"
    )
    table, function = run(body)
    loop = function.body[1]
    assert isinstance(loop, ast.For) and isinstance(loop.body[0], ast.Assign)
    assert table.value(loop.body[0].value).certainty is Certainty.UNKNOWN  # int first, tensor later
    body = "def f(x: Tensor, n: int):\n    while n:\n        x = x + 1\n        n -= 1\n    return x\n"
    assert result(body).on_device


def test_narrowing() -> None:
    body = (
        "def f(x):\n    if isinstance(x, torch.Tensor):\n        return x\n    return torch.zeros(1, device='cuda')\n"
    )
    assert result(body).on_device
    body = "def f(t: Tensor):\n    if not torch.is_tensor(t):\n        return 1\n    return t\n"
    table, function = run(body)
    last = function.body[-1]
    assert isinstance(last, ast.Return) and last.value is not None
    assert table.value(last.value).on_device


def test_a_branch_for_calls_of_another_kind() -> None:
    body = "def f(x: Tensor):\n    n = 1.0 + {}\n    if isinstance(n, torch.Tensor):\n        return n\n    return x\n"
    table, function = run(body.format("x.size(2)"))
    branch = function.body[1]
    assert isinstance(branch, ast.If) and isinstance(branch.body[0], ast.Return) and branch.body[0].value is not None
    assert table.value(branch.body[0].value).certainty is Certainty.UNKNOWN
    assert result(body.format("x")).certainty is Certainty.ASSUMED


def test_masks_of_the_host() -> None:
    body = "def f(rows: Tensor, lens_cpu: Tensor):\n    return rows {} (lens_cpu > 1)\n"
    assert result(body.format("&")).device is Device.HOST
    assert result(body.format("*")).on_device  # a 0-d host tensor may be a factor


def test_what_is_sent_to_the_host_without_waiting_is_a_tensor() -> None:
    assert result("def f(x):\n    return x.to('cpu', non_blocking=True)\n").device is Device.HOST
    assert result("def f(x):\n    return x.to('cpu')\n").kind is Kind.UNKNOWN
    assert result("def f(x):\n    return x.to('cuda', non_blocking=True)\n").kind is Kind.UNKNOWN


def test_an_argument_that_is_made_a_tensor_is_the_rare_one() -> None:
    body = (
        "def f(a):\n    if not isinstance(a, torch.Tensor):\n        a = torch.tensor(a)\n    return torch.mm(a, a)\n"
    )
    assert result(body).on_device
    body = "def f(a):\n    if isinstance(a, list):\n        a = torch.tensor(a)\n    return a\n"
    assert not result(body).on_device


def test_names_by_convention_are_assumed_tensors() -> None:
    value = result("def f(hidden_states):\n    return hidden_states\n")
    assert value.on_device and value.certainty is Certainty.ASSUMED and value.dtype is DTypeClass.FLOAT
    assert result("def f(input_ids):\n    return input_ids\n").dtype is DTypeClass.INT
    assert result("def f(seq_lens_cpu: Tensor):\n    return seq_lens_cpu\n").device is Device.HOST
    assert result("def f(_pinned_vals: Tensor):\n    return _pinned_vals\n").device is Device.HOST
    assert result("def f(thing):\n    return thing\n").kind is Kind.UNKNOWN


def test_parameters_annotated_as_tensors_stay_tensors_whatever_unknown_they_are_given() -> None:
    body = "def f(*args, sample: Tensor = None):\n    if sample is None:\n        sample = args[1]\n    return sample\n"
    value = result(body)
    assert value.on_device and value.certainty is Certainty.ASSUMED
    assert result("def f(x: Tensor):\n    x = x.shape[0]\n    return x\n").kind is Kind.SCALAR
    assert result("def f(x: Tensor, fetch):\n    y = fetch(x)\n    return y\n").kind is Kind.UNKNOWN


def test_list_append_and_unpacking() -> None:
    body = (
        "def f(x: Tensor):\n"
        "    out = []\n"
        "    for row in x:\n"
        "        out.append(row)\n"
        "    a, b = x.chunk(2)\n"
        "    return torch.stack(out), a\n"
    )
    value = result(body)
    assert value.items is not None and all(item.on_device for item in value.items)


def test_reasons_name_the_source() -> None:
    value = result("def f(x: Tensor):\n    y = torch.zeros(2, device='cuda')\n    return y + 1\n")
    assert [(r.line, r.text) for r in value.reasons] == [(6, "returned by torch.zeros(...)")]


@pytest.mark.parametrize(
    "expression",
    ["(" * 80 + "x" + ")" * 80, "x" + ".a" * 3000, "x" + "[0]" * 3000, "1" + "+1" * 3000, "-" * 3000 + "x"],
)
def test_deep_nesting_does_not_crash(expression: str) -> None:
    try:
        tree = ast.parse(f"def f(x):\n    return {expression}\n")
    except (RecursionError, MemoryError, SyntaxError):
        pytest.skip("this Python cannot parse it")
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    interpret(function, FileNames(tree), Nothing(), qualname="f")


def test_long_elif_chain() -> None:
    lines = ["def f(x: Tensor):", "    if x is None:", "        y = 1"]
    for number in range(2000):
        lines += [f"    elif number == {number}:", "        y = x"]
    lines.append("    return y")
    assert result("\n".join(lines) + "\n").certainty is Certainty.UNKNOWN


def test_statements_of_all_kinds() -> None:
    body = (
        "def f(x: Tensor, kind, data):\n"
        "    with torch.no_grad(), torch.device('cuda'):\n"
        "        made = torch.zeros(2)\n"
        "    after = torch.zeros(2)\n"
        "    try:\n"
        "        y = x.cpu()\n"
        "    except RuntimeError:\n"
        "        y = x.to('cpu')\n"
        "    finally:\n"
        "        z = x.sum()\n"
        "    match kind:\n"
        "        case 'a':\n"
        "            w = x\n"
        "        case other:\n"
        "            w = x * 2\n"
        "    if (n := x.argmax()) is not None:\n"
        "        pass\n"
        "    while True:\n"
        "        last = x.max()\n"
        "        if last > 3:\n"
        "            break\n"
        "    return made, after, y, z, w, n, last\n"
    )
    items = result(body).items
    assert items is not None
    assert [item.device.value for item in items] == [
        "accelerator", "host", "host", "ambient", "ambient", "ambient", "ambient",
    ]  # fmt: skip


def test_default_device() -> None:
    body = "def f():\n    torch.set_default_device('cuda')\n    return torch.ones(2)\n"
    assert result(body).device is Device.ACCELERATOR


def test_generators_yield() -> None:
    value = result("def f(x: Tensor):\n    for row in x:\n        yield row.cpu()\n")
    assert value.kind is Kind.ITERATOR and value.element is not None and value.element.device is Device.HOST


def test_tokenizer_output_follows_its_device() -> None:
    body = "def f(tokenizer, text):\n    return tokenizer(text, return_tensors='pt')"
    encoding = result(body + "\n")
    assert encoding.kind is Kind.ENCODING and encoding.device is Device.HOST
    assert result(body + ".to('cuda')['input_ids']\n").device is Device.ACCELERATOR
    assert result(body + ".input_ids\n").device is Device.HOST
    lists = result("def f(tokenizer, text):\n    return tokenizer(text)['input_ids']\n")
    assert lists.kind is Kind.SEQUENCE


def test_modules_move_in_place() -> None:
    body = "def f(x: Tensor):\n    model = nn.Linear(2, 2)\n    {}\n    return model(torch.zeros(1, 2))\n"
    assert result(body.format("pass")).device is Device.HOST
    assert result(body.format("model.cuda()")).device is Device.ACCELERATOR
    assert result(body.format("model = model.to('cuda').eval()")).device is Device.ACCELERATOR


def test_collective_over_a_cpu_group_is_on_the_host() -> None:
    body = (
        "import torch.distributed as dist\n"
        "def f(x: Tensor, cpu_group, device_group):\n"
        "    dist.all_reduce(x, group={})\n"
        "    return x\n"
    )
    assert result(body.format("cpu_group")).device is Device.HOST
    assert result(body.format("device_group")).on_device


def test_kernel_languages_are_not_python() -> None:
    body = "import triton\n@triton.jit\ndef f(x: Tensor):\n    return x + 1\n"
    assert result(body).kind is Kind.UNKNOWN
    tiles = "def f(x: Tensor):\n    for tile in {}(4):\n        x[tile] = x[tile] + 1\n    return x\n"
    head = "import helion.language as hl\nfrom .register import register\n@register(mutates=['x'])\n"
    assert result(head + tiles.format("hl.tile")).kind is Kind.UNKNOWN
    assert result(head + tiles.format("range")).on_device


def test_a_huge_definition_stops_at_its_budget() -> None:
    body = "def f(x: Tensor):\n" + "    g(x)\n" * 30_000 + "    return x\n"
    assert result(body).on_device


def test_a_number_as_well_as_a_tensor() -> None:
    for annotation, sure in (("int | Tensor", False), ("Tensor", True), ("Tensor | None", True)):
        text = f"def f(length: {annotation}, x: Tensor):\n    length\n    return x\n"
        tree = ast.parse(PRELUDE + text)
        function = tree.body[-1]
        assert isinstance(function, ast.FunctionDef)
        table = interpret(function, FileNames(tree), Nothing(), qualname="f")
        statement = function.body[0]
        assert isinstance(statement, ast.Expr)
        assert (table.value(statement.value).certainty is not Certainty.UNKNOWN) is sure
