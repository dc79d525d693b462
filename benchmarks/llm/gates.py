"""What the gates of model-written patches let pass: the rules' own rewrites, and the same with one fault each.

    python benchmarks/llm/gates.py [--show]

The rules' own rewrites in ``corpus/rules`` are right patches. Each is given to the gates of form as if a model had
written it. Of those that pass, every mutant with one fault is given to them too; nearly all of these change what the
function means (a few come out equivalent). No model, no run, no second scan: only form is judged here.
"""

from __future__ import annotations

import argparse
import ast
import copy
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Confidence, Finding
from awp_lint.detector.project.source import Source
from awp_lint.detector.scan import scan
from awp_lint.patches.llm.gates import faults
from awp_lint.patches.llm.rows import Function
from awp_lint.patches.splice import splice
from awp_lint.rules.registry import rule

ROOT = Path(__file__).resolve().parents[2]

_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
_ORDERED = (ast.Sub, ast.Div, ast.MatMult, ast.Pow, ast.FloorDiv, ast.Mod)


def functions(text: str) -> dict[str, Function]:
    """The functions of a module by dotted name."""
    found: dict[str, Function] = {}

    def visit(node: ast.AST, above: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = above
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{above}.{child.name}" if above else child.name
                if not isinstance(child, ast.ClassDef):
                    found[name] = child
            visit(child, name)

    visit(ast.parse(text), "")
    return found


def pairs() -> Iterator[tuple[Finding, Function, Function]]:
    """A finding, its function as it is and as the rule's rewrite of this finding alone makes it."""
    for bad in sorted((ROOT / "corpus" / "rules").glob("*/bad_*.py")):
        settings = Settings(select=(bad.parent.name,), confidence=Confidence.LOW, jobs=1)
        source = Source.decode(str(bad), bad.read_bytes())
        before = functions(source.text)
        for finding in scan([str(bad)], settings).findings:
            name, fix = finding.function, finding.fix
            if name not in before or fix is None or not fix.edits or fix.others:
                continue
            after = functions(splice(source.text, fix.edits))
            if name in after and ast.dump(before[name]) != ast.dump(after[name]):
                yield finding, before[name], after[name]


def mutants(function: Function) -> Iterator[tuple[str, Function]]:
    """The function with one fault each, and what kind of fault it is."""
    nodes = list(ast.walk(function))
    local = sorted({n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)})
    arguments = [a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)]
    for index, node in enumerate(nodes):
        for kind, change in _changes(node, [*local, *arguments]):
            twin = copy.deepcopy(function)
            change(list(ast.walk(twin))[index])
            ast.fix_missing_locations(twin)
            if ast.dump(twin) != ast.dump(function):
                yield kind, ast.parse(ast.unparse(twin)).body[0]  # type: ignore[misc]


def _changes(node: ast.AST, names: list[str]) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    def setting(field: str, value: object) -> Callable[[Any], Any]:
        return lambda twin: setattr(twin, field, value)

    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in _OPERATORS:
        yield "operator", setting("op", _OPERATORS[type(node.op)]())
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ORDERED):
        yield "operands swapped", lambda twin: twin.__dict__.update(left=twin.right, right=twin.left)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _OPERATORS:
        yield "comparison", setting("ops", [_OPERATORS[type(node.ops[0])](), *node.ops[1:]])
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "constant", setting("value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield "constant", setting("value", node.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield "string", setting("value", node.value + "x")
    if isinstance(node, ast.If | ast.While):
        yield "condition", lambda twin: setattr(twin, "test", ast.UnaryOp(ast.Not(), twin.test))
    if isinstance(node, ast.If) and node.orelse:
        yield "branch dropped", setting("orelse", [])
    if isinstance(node, ast.Call):
        if len(node.args) > 1:
            yield "arguments swapped", lambda twin: setattr(twin, "args", [twin.args[1], twin.args[0], *twin.args[2:]])
        if node.keywords:
            yield "keyword dropped", lambda twin: setattr(twin, "keywords", twin.keywords[1:])
        if isinstance(node.func, ast.Attribute):
            yield (
                "another call",
                lambda twin: setattr(twin.func, "attr", "detach" if twin.func.attr != "detach" else "t"),
            )
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
        other = names[(names.index(node.id) + 1) % len(names)]
        yield "variable", setting("id", other)
    if isinstance(node, ast.ExceptHandler) and node.type is not None:
        yield "exception widened", setting("type", ast.Name("BaseException", ast.Load()))
    if isinstance(node, ast.Return) and node.value is not None:
        yield "result dropped", setting("value", None)
    body = getattr(node, "body", None)
    if isinstance(body, list):
        yield "early return", lambda twin: twin.body.insert(0, ast.Return(ast.Constant(None)))
        for number, statement in enumerate(body):
            if not isinstance(statement, ast.Pass):
                yield "statement dropped", _dropping(number)
        for number in range(len(body) - 1):
            yield "statements swapped", _swapping(number)


def _dropping(number: int) -> Callable[[Any], Any]:
    return lambda twin: twin.body.__setitem__(number, ast.Pass())


def _swapping(number: int) -> Callable[[Any], Any]:
    return lambda twin: twin.body.__setitem__(slice(number, number + 2), [twin.body[number + 1], twin.body[number]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="the mutants that pass, and why right patches do not")
    options = parser.parse_args()
    began = time.monotonic()
    right = passed = 0
    made: Counter[str] = Counter()
    through: Counter[str] = Counter()
    for finding, before, after in pairs():
        known = rule(finding.rule)
        right += 1
        advice = finding.fix.title if finding.fix else ""
        wrong = faults(before, after, finding.span, known, advice)
        passed += not wrong
        if wrong:
            if options.show:
                print(f"refused: {Path(finding.path).parent.name} {finding.function}: {wrong[0]}")
            continue
        for kind, mutant in mutants(after):
            made[kind] += 1
            if not faults(before, mutant, finding.span, known, advice):
                through[kind] += 1
                if options.show:
                    print(
                        f"passes ({kind}): {Path(finding.path).parent.name} {finding.function}\n{ast.unparse(mutant)}\n"
                    )
    total, escaped = sum(made.values()), sum(through.values())
    print("gates of form on the rules' own rewrites in the corpus; no model, no run, no second scan")
    print(f"Python {platform.python_version()}; {time.monotonic() - began:.0f} s")
    print(f"right patches accepted: {passed} of {right}")
    print(f"these with one fault more: {total - escaped} of {total} refused ({1 - escaped / max(total, 1):.1%})")
    for kind, count in made.most_common():
        print(f"  {kind:<20} {count - through[kind]:>5} of {count:>5} refused")


if __name__ == "__main__":
    main()
