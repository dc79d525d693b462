"""Something small beside a step, a layer or a whole pipeline."""

from __future__ import annotations

import ast
import re

from awp_lint.detector.semantics.view import Level
from awp_lint.rules.base import Candidate
from awp_lint.rules.common import ancestors, callee
from awp_lint.rules.fusion.context import whole_class
from awp_lint.rules.worth.items import FEW
from awp_lint.rules.worth.table import Case, doubt

_WITHIN_STEPS = frozenset((Level.LAYER, Level.EXPERT, Level.ELEMENT))
#: What is as large as positions × dimensions, and what makes something of positions × positions.
_COSINES = "cosines"
_TRIANGLE = re.compile(r"\btri[lu]\(")
_FILLED = frozenset({"full", "ones", "zeros", "new_full", "new_ones", "new_zeros"})
#: What puts a few tensors beside each other.
_PUTS_TOGETHER = frozenset({"cat", "concat", "stack", "hstack", "vstack"})
_PREPARES = re.compile(r"_?(prepare|encode|check|get|retrieve)_\w+")
#: ``if sigma > 0.0:``
_NOISY = re.compile(r"(\w+\.)*(\w*_)?(sigma|variance|std|std_dev|eta)(_\w+)? > 0(\.0)?")
#: What runs a diffusion model's steps.
_PIPELINE = re.compile(r"\wPipeline\w*\.__call__$|\wStep\.(__call__|encode_\w+)$")


@doubt("AWP301", seldom=True)
def one_kernel_a_step(case: Case) -> bool:
    """One small kernel beside all that a step of a model does."""
    return _WITHIN_STEPS.isdisjoint(case.path) and not (Level.TOKEN in case.path or Level.LOOP in case.path)


@doubt("AWP306", seldom=True)
def small_beside_a_layer(case: Case) -> bool:
    """Something small is made anew in a layer that calls show to run on a whole input, not on one token."""
    if _WITHIN_STEPS.isdisjoint(case.path):
        return True
    stepped = Level.TOKEN in case.path
    if not stepped and isinstance(case.node, ast.Call) and callee(case.node) in _PUTS_TOGETHER:
        return True
    return bool(case.frequency.chain) and not stepped and not _large_table(case.candidate)


@doubt("AWP103", seldom=True)
def a_few_rows(case: Case) -> bool:
    """The longest or shortest row of a batch, once a request, beside all that is done for each."""
    extreme = isinstance(case.node, ast.Call) and callee(case.node) in ("max", "min")
    return extreme and case.path == (Level.REQUEST,)


@doubt("AWP30[23]", seldom=True)
def beside_all_layers(case: Case) -> bool:
    """Calls lead there once a request: it stands before or after all layers."""
    return case.path == (Level.REQUEST,) and bool(case.frequency.chain)


@doubt("AWP(203|306|501)", seldom=True)
def once_a_step(case: Case) -> bool:
    """Once a step, beside all its layers."""
    return Level.STEP in case.path and not _in_a_layer(case.path)


@doubt("AWP303", seldom=True)
def once_a_token(case: Case) -> bool:
    """A few kernels once a token, beside all its layers."""
    return Level.TOKEN in case.path and not _in_a_layer(case.path)


@doubt("AWP(10|[23]|60[12356]).*", seldom=True)  # what a begin index saves is told once for all steps
def beside_denoising(case: Case) -> bool:
    """A diffusion pipeline does it a few times a request, before or after all the steps of its model.

    Or, if it is small beside a layer, a part that is run once a request does: a vocoder.
    """
    few = FEW | {"AWP301": {Level.LAYER}, "AWP203": {Level.ELEMENT}}.get(case.rule, set())
    if not few.issuperset(_prepared(case)):
        return False
    if any(base.endswith("DiffusionPipeline") for base in case.view.class_bases):
        return True
    first = case.frequency.chain[0] if case.frequency.chain else None
    return first is not None and "diffusers" in first.path and bool(_PIPELINE.search(first.function))


@doubt("AWP60[123]")
def noiseless_step(case: Case) -> bool:
    """Where the noise of a step is nothing: in the last step of a request alone."""
    child: ast.AST = case.node
    for parent in ancestors(case.view, case.node):
        if isinstance(parent, ast.If) and child in parent.orelse and _NOISY.fullmatch(ast.unparse(parent.test)):
            return True
        child = parent
    return False


#: More steps than this are many.
_FEW_STEPS = 4


@doubt(r"AWP(10[1-5]|60[123])")
def few_steps(case: Case) -> bool:
    """A schedule that has a step or two, and refuses any other number."""
    whole = whole_class(case.view, case.file)
    methods = [s for s in whole.body if isinstance(s, ast.FunctionDef)] if whole is not None else []
    setting = next((method for method in methods if method.name == "set_timesteps"), None)
    return setting is not None and any(
        isinstance(part, ast.If) and isinstance(part.body[0], ast.Raise) and _other_than_few(part.test)
        for part in setting.body
    )


def _other_than_few(test: ast.expr) -> bool:
    """``num_inference_steps != 2``."""
    number = test.comparators[0] if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq) else None
    few = isinstance(number, ast.Constant) and isinstance(number.value, int) and number.value <= _FEW_STEPS
    return few and isinstance(test, ast.Compare) and "steps" in ast.unparse(test.left)


def _prepared(case: Case) -> tuple[Level, ...]:
    """The path, without the frames that a method goes through which makes what a request begins with."""
    entered = case.view.frequency(case.view.node)
    once = _PREPARES.fullmatch(case.view.qualname.rpartition(".")[2]) and Level.STEP not in entered.path
    return tuple(level for level in case.path if not (once and level in (Level.STEP, Level.ELEMENT)))


def _in_a_layer(path: tuple[Level, ...]) -> bool:
    return Level.LAYER in path or Level.EXPERT in path


def _large_table(candidate: Candidate) -> bool:
    """Whether it is the cosines of all positions, or a triangle whose size the code does not give in numbers."""
    if _COSINES in candidate.message:
        return True
    return _TRIANGLE.search(ast.unparse(candidate.node)) is not None and any(
        isinstance(part, ast.Name | ast.Attribute)
        for call in ast.walk(candidate.node)
        if isinstance(call, ast.Call) and callee(call) in _FILLED and call.args
        for part in ast.walk(call.args[0])
    )


DOUBTS = (
    one_kernel_a_step,
    small_beside_a_layer,
    a_few_rows,
    beside_all_layers,
    once_a_step,
    once_a_token,
    beside_denoising,
    noiseless_step,
    few_steps,
)
