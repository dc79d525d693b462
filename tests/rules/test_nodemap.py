"""Both syntax trees of a definition pair up, node by node, for every construct of the language."""

from __future__ import annotations

import ast
import sys

import pytest

from awp_lint.detector.project.source import Source
from awp_lint.detector.semantics.model import view_of_source
from awp_lint.rules.nodemap import Definition, Mismatch, code_of

SOURCE = '''
@outer(1, flag=True)
class Thing(Base, metaclass=Meta):
    """Text."""

    field: int = 3

    @property
    async def method(self, a, /, b: int = 1, *rest: int, key=None, **more) -> "str":
        x[a, b] = x[(a, b)]; y = x[a,]
        x[1:2, ..., ::3] += x[:]
        first = a and b and not (c or d and e)
        call(k=1, *rest, **{"a": 1, **more}, last=lambda q, *r, s=2: (q, r, s))
        if a < b <= c != d:
            pass
        elif a in b:
            del a, b
        else:
            raise Error from cause
        for i, (j, *k) in enumerate(z):
            continue
        else:
            break_it = [w for v in z if v for w in v if w], {m: n for m, n in o}, {p async for p in q}
        while (line := read()) is not None:
            break
        with open(a) as f, lock:
            yield f
        async with session as s, other as (t, u):
            await s
        try:
            return f"{a!r:>{width}} text {b}" "more" f"{c}"
        except (E1, E2) as error:
            assert a, f"{error}"
        except E3:
            yield from other
        finally:
            total = -1 ** 2 + ~3 @ m // 4 % 5 << 1 | 2 ^ 3 & 4
        match a:
            case [1, {"k": v}] if v > 1:
                global g
                g = (yield)
            case _:
                h = a if b else c
        é = "ü" + beta.attribute.chain[0]("ß")(é)
'''


def _definitions(text: str) -> list[Definition]:
    file = view_of_source(text)
    return [Definition(view, file, Source(path="x.py", text=text)) for view in file.functions()]


def test_every_expression_maps_to_the_same_code() -> None:
    seen = 0
    for definition in _definitions(SOURCE):
        for node in ast.walk(definition.view.node):
            if not isinstance(node, ast.expr) or definition.view.parent(node) is None:
                continue
            if _in_pattern_or_parameter(node, definition):
                continue
            mapped = definition.node(node)
            if isinstance(node, ast.Starred | ast.JoinedStr | ast.Constant | ast.Slice):
                continue
            start, end = definition.range(node)
            if definition.source.text[start:end].startswith("(") is False:
                code = code_of(mapped)
                assert code == definition.source.text[start:end], ast.dump(node)
                seen += 1
    assert seen > 100


def _in_pattern_or_parameter(node: ast.AST, definition: Definition) -> bool:
    current: ast.AST | None = node
    while current is not None:
        if isinstance(current, ast.pattern | ast.FormattedValue | ast.JoinedStr):
            return True
        if isinstance(current, ast.Subscript | ast.Slice) and isinstance(node, ast.Tuple):
            return True
        current = definition.view.parent(current)
    return False


def test_indented_definitions_keep_their_columns() -> None:
    text = "class A:\n\tdef f(self):\n\t\treturn g(\n\t\t\tself.x,\n\t\t\t2)\n"
    definition = next(d for d in _definitions(text) if d.view.qualname == "A.f")
    call = next(iter(definition.view.nodes(ast.Call)))
    assert code_of(definition.node(call), "\t\t") == "g(\n\t\t\tself.x,\n\t\t\t2)"


def test_edit_positions_are_code_points_and_keep_outer_brackets() -> None:
    text = "def f(x):\n    é = ('ü' + (x))\n"
    definition = next(d for d in _definitions(text) if d.view.qualname == "f")
    sum_ = next(iter(definition.view.nodes(ast.BinOp)))
    edit = definition.replace(sum_, "y")
    assert text[: edit.start] + edit.replacement + text[edit.end :] == "def f(x):\n    é = (y)\n"


def test_statements_that_share_a_line() -> None:
    text = "a = 1; b = f(a)\nc = g(b)\n"
    definition = _definitions(text)[0]
    names = [code_of(definition.node(call)) for call in definition.view.nodes(ast.Call)]
    assert names == ["f(a)", "g(b)"]


def test_crlf_and_form_feed() -> None:
    text = "import torch\r\n\x0c\r\ndef f(x):\r\n    return g(\r\n        x\r\n    )\r\n"
    definition = next(d for d in _definitions(text) if d.view.qualname == "f")
    call = next(iter(definition.view.nodes(ast.Call)))
    assert code_of(definition.node(call), "    ", "\r\n") == "g(\r\n        x\r\n    )"


def test_foreign_node_is_a_mismatch() -> None:
    definition = _definitions("def f(x):\n    return x\n")[1]
    with pytest.raises(Mismatch):
        definition.node(ast.parse("y").body[0])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="new syntax")
def test_type_parameters() -> None:
    definition = next(d for d in _definitions("def f[T](x: T) -> T:\n    return g(x)\n") if d.view.qualname == "f")
    assert code_of(definition.node(next(iter(definition.view.nodes(ast.Call))))) == "g(x)"


def test_torch_name_uses_the_files_own_imports() -> None:
    file = "import torch.nn.functional as F\nfrom torch import where as pick\ndef f(x):\n    return x\n"
    definition = _definitions(file)[1]
    assert definition.torch_name("torch.nn.functional.softmax") == "F.softmax"
    assert definition.torch_name("torch.where") == "pick"
    assert not definition.imports
    assert definition.torch_name("torch.zeros") == "torch.zeros"
    assert [(i.module, i.name) for i in definition.imports] == [("torch", None)]
