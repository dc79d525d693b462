"""Ways through the code that ordinary inference does not take, and what is there for gradients alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.semantics.view import FunctionView, Region
from awp_lint.rules.common import ancestors
from awp_lint.rules.doubts import default_none
from awp_lint.rules.worth.choices import choices_of
from awp_lint.rules.worth.table import Case, doubt

#: The parameter by which an invertible layer is told to go back, from noise to data.
_BACK = re.compile(r"(is_)?(reverse|inverse|invert)")
#: What a likelihood needs of such a layer besides its result.
_DETERMINANT = re.compile(r"(\w+_)?log_?(abs_?)?(det|deriv)\w*|ladj|ldj|sldj")
#: A low-rank update beside the weights that it was trained for.
_ADAPTER = re.compile(r"_?\w*(LoRA|Lora|DoRA|Dora|LoHa|LoKr)\w*")
#: What a voice, or another reference, is turned into before anything is said with it.
_REFERENCE = re.compile(r"_?(\w+_)?(clone_voice|voice_cloning|conditioning_latents|cond_latents|speaker_embeddings?)")


@doubt("AWP111")
def picked_by_an_option(case: Case) -> bool:
    """A way to pick that is not taken unless somebody passes a parameter for it, and no call is seen to pass it."""
    if case.frequency.chain:
        return False
    left_out = default_none(case.view)
    return any(_given(test) in left_out for test, taken in _branches(case.node, case.view) if taken)


@doubt(r"AWP3\d+")
def of_a_likelihood(case: Case) -> bool:
    """The way from data to noise through an invertible layer, which likelihoods need: what samples goes back."""
    arguments = getattr(case.view.node, "args", None)
    if not isinstance(arguments, ast.arguments):
        return False
    back = {a.arg for a in (*arguments.args, *arguments.kwonlyargs) if _BACK.fullmatch(a.arg)}
    if not back or not any(_is_back(test, back) is not taken for test, taken in _told(case, back)):
        return False
    names = (name for name in case.view.nodes(ast.Name) if isinstance(name, ast.Name))
    return any(_DETERMINANT.fullmatch(name.id) for name in names)


@doubt("AWP307")
def copied_for_gradients(case: Case) -> bool:
    """A copy of a part of what the function writes to in place: where gradients flow it has to be one."""
    if case.view.regions(case.node) & Region.INFERENCE:
        return False
    written = {
        base.id
        for statement in case.view.nodes(ast.Assign, ast.AugAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)])
        if isinstance(target, ast.Subscript) and isinstance(base := target.value, ast.Name)
    }
    for part in ast.walk(case.node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "clone":
            base = part.func.value
            if isinstance(base, ast.Subscript):
                while isinstance(base, ast.Subscript):
                    base = base.value
                if isinstance(base, ast.Name) and base.id in written:
                    return True
    return False


@doubt(r"AWP30[1-4]")
def of_an_adapter(case: Case) -> bool:
    """The update of an adapter beside its weights: whoever serves it merges the two."""
    return _ADAPTER.fullmatch((case.view.class_name or "").rpartition(".")[2]) is not None


@doubt("AWP108")
def of_a_reference(case: Case) -> bool:
    """What a reference is turned into, once for all that is made with it."""
    names = (case.view.qualname, *(frame.function for frame in case.frequency.chain))
    return any(_REFERENCE.fullmatch(name.rpartition(".")[2]) for name in names)


@doubt()
def chosen_by_a_word_unsaid(case: Case) -> bool:
    """A part that one word of a choice makes, which nothing in the package says, though it says another of them."""
    name = (case.view.class_name or "").rpartition(".")[2]
    choices = choices_of(name, case.file) if name else None
    if not choices or not case.file.is_spare(name):
        return False
    words = {word for word, _ in choices}
    others = frozenset().union(*(choice for _, choice in choices)) - words
    return not any(map(case.file.says, words)) and any(map(case.file.says, others))


def _branches(node: ast.AST, view: FunctionView) -> Iterator[tuple[ast.expr, bool]]:
    """The tests above a node, and whether it is on the side where they hold."""
    child = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.If) and child is not parent.test:
            yield parent.test, any(child is statement for statement in parent.body)
        child = parent


def _told(case: Case, back: set[str]) -> Iterator[tuple[ast.expr, bool]]:
    return ((test, taken) for test, taken in _branches(case.node, case.view) if _is_back(test, back) is not None)


def _is_back(test: ast.expr, back: set[str]) -> bool | None:
    """What ``reverse`` is where a test holds; None for other tests."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _is_back(test.operand, back)
        return None if inner is None else not inner
    return True if isinstance(test, ast.Name) and test.id in back else None


def _given(test: ast.expr) -> str:
    """The name that ``if name is not None:`` asks about."""
    asked = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot) and isinstance(test.left, ast.Name)
    return test.left.id if asked and isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) else ""


DOUBTS = (
    picked_by_an_option,
    of_a_likelihood,
    copied_for_gradients,
    of_an_adapter,
    of_a_reference,
    chosen_by_a_word_unsaid,
)
