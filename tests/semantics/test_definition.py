"""The structure of definitions: nodes, loops, bindings, writes."""

from __future__ import annotations

import ast
import textwrap

import pytest

from awp_lint.detector.semantics.defined import definitions
from awp_lint.detector.semantics.definition import Definition

SOURCE = textwrap.dedent(
    """
    import os

    class Outer:
        limit = len(os.sep)

        @decorate(lambda q: q)
        def method(self, first, *rest, flag=default(), **more):
            for row in rows(first):
                while row.ready():
                    total = [cell + column for column in row for cell in column if cell]
                else:
                    after = 1
            def inner(z):
                return first + z
            return inner

    async def top():
        pass
    """
)


def named(source: str) -> dict[str, Definition]:
    return {d.qualname: d for d in definitions(ast.parse(source))}


def texts(nodes: object) -> list[str]:
    assert isinstance(nodes, (list, tuple))
    return [ast.unparse(node) for node in nodes]


def test_definitions_in_source_order() -> None:
    found = definitions(ast.parse(SOURCE))
    assert [d.qualname for d in found] == ["<module>", "Outer.<lambda>", "Outer.method", "Outer.method.inner", "top"]
    method = found[2]
    assert method.cls is not None and method.cls.name == "Outer"
    assert found[3].cls is None and found[3].outer is method
    assert method.first_line == 7 and ast.unparse(method.node).startswith("@decorate")


SCATTERED = """
if flag:
    def one(): ...
else:
    class Held:
        try:
            def two(self):
                with lock:
                    class Inner:
                        def three(self): ...
                for _ in rows:
                    async def four(): ...
                else:
                    key = lambda row: row
        except ImportError:
            def five(self): ...
        finally:
            def six(self):
                match mode:
                    case 1:
                        def seven(): ...
"""


@pytest.mark.parametrize("source", [SOURCE, SCATTERED, SCATTERED.replace("lambda row: row", "rows[0]")])
def test_the_text_of_a_file_only_spares_work(source: str) -> None:
    tree = ast.parse(source)

    def told(text: str | None) -> list[tuple[object, ...]]:
        found = definitions(tree, text)
        return [(d.qualname, d.node, d.cls, d.prefix, [inner.node for inner in d.nested]) for d in found]

    assert told(source) == told(None)
    names = {name for name, *_ in told(source)}
    assert source is SOURCE or {"one", "Held.two", "Held.two.Inner.three", "Held.two.four", "Held.six.seven"} <= names


def test_nodes_leave_nested_definitions_out_and_take_their_defaults() -> None:
    found = named(SOURCE)
    assert texts(found["<module>"].nodes(ast.Call)) == ["len(os.sep)", "decorate(lambda q: q)", "default()"]
    assert texts(found["Outer.method"].nodes(ast.Call)) == ["rows(first)", "row.ready()"]
    assert texts(found["Outer.method.inner"].nodes(ast.Name)) == ["first", "z"]


def test_loops_hold_what_repeats() -> None:
    method = named(SOURCE)["Outer.method"]
    iterable, ready = method.nodes(ast.Call)
    assert method.loops(iterable) == ()
    assert [type(loop).__name__ for loop in method.loops(ready)] == ["While", "For"]
    after = next(n for n in method.nodes(ast.Assign) if ast.unparse(n) == "after = 1")
    assert [type(loop).__name__ for loop in method.loops(after)] == ["For"]
    element = method.nodes(ast.BinOp)[0]
    comprehension = [
        ast.unparse(loop.target) for loop in method.loops(element)[:2] if isinstance(loop, ast.comprehension)
    ]
    assert comprehension == ["cell", "column"]
    test = next(n for n in method.nodes(ast.comprehension) if n.ifs)  # type: ignore[attr-defined]
    assert len(method.loops(test.ifs[0])) == 4  # type: ignore[attr-defined]


def test_statement_of_a_lambda_is_the_one_around_it() -> None:
    found = named("x = sorted(items, key=lambda t: t.cost)")
    body = found["<lambda>"].node.body  # type: ignore[union-attr]
    assert isinstance(body, ast.expr)
    assert ast.unparse(found["<lambda>"].statement(body)).startswith("x = sorted")


def test_assignments_and_uses() -> None:
    source = textwrap.dedent(
        """\
        def f(a):
            b = a
            for b in a:
                pass
            def g():
                return b
            def h(b):
                return b
        """
    )
    function = named(source)["f"]
    assert [s.lineno for s in function.assignments("b")] == [2, 3]
    assert [use.lineno for use in function.uses("b")] == [6]
    assert function.local_names == {"a", "b", "g", "h"}


def test_class_bodies_bind_nothing_outside() -> None:
    assert named(SOURCE)["<module>"].local_names == {"os", "Outer", "top"}


def test_written_in() -> None:
    source = textwrap.dedent(
        """
        def f(self, x, cache, out, kept):
            for i in range(3):
                x.add_(1)
                cache[i] = kept
                self.count += 1
                self.state.pos = i
                torch.mul(kept, 2, out=out)
                names.append(kept)
                total, *others = kept
            return x
        """
    )
    function = named(source)["f"]
    loop = function.nodes(ast.For)[0]
    assert function.written_in(loop) == {
        "i", "x", "cache", "self.count", "self.state", "out", "names", "total", "others",
    }  # fmt: skip
