"""AWP608 fp32-load."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Edit, Effect, Event, Fix, MarkKind, RootCause, Safety
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import IDLE, ancestors, argument, callee, method, opaque, short
from awp_lint.rules.edits import add_keyword

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_TYPES = frozenset({"half", "bfloat16"})
_LOADS = ("dtype", "torch_dtype", "quantization_config", "load_in_8bit", "load_in_4bit", "variant")


class Fp32Load(Rule):
    """Weights read in fp32 and cast down afterwards."""

    id = "AWP608"
    name = "fp32-load"
    root_cause = RootCause.MEMORY
    confidence = Confidence.MEDIUM
    cost_us = 1000.0
    event = Event.NONE
    mark = MarkKind.CALL
    words = (b"from_pretrained",)
    anywhere = True
    nodes = (ast.Call,)
    calls = frozenset({"from_pretrained"})

    summary = "weights are loaded in fp32 and cast to half precision afterwards"
    what = """
        `X.from_pretrained(name).half()`, `.to(torch.float16)` or `.bfloat16()` without a `dtype` (or `torch_dtype`)
        argument, chained or in the next statement.
        """
    why = """
        The weights are made in fp32 first and then copied: twice the memory at the peak, a slower start, and on small
        machines an out-of-memory error that loading in the wanted type would avoid.
        """
    fine = """
        - A `dtype` is given, or the weights are quantised.
        - Tests and training.
        """
    safety = """
        Unsafe: a cast chained to the load becomes `dtype=` (`torch_dtype=` before transformers 5 and in diffusers).
        Parts that a library keeps in fp32 on purpose stay so, which a cast afterwards overrides: numbers may differ. A
        cast in a statement of its own gets a recommendation.
        """
    references = (
        "https://huggingface.co/docs/transformers/main_classes/model#transformers.PreTrainedModel.from_pretrained",
        "https://huggingface.co/docs/diffusers/optimization/memory",
    )
    bad = """
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained("lm").half().to("cuda")
        """
    good = """
        import torch
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained("lm", dtype=torch.float16).to("cuda")
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) != "from_pretrained" or opaque(node) or view.regions(node) & (IDLE | Region.FALLBACK):
            return
        if any(argument(node, None, name) is not None for name in _LOADS):
            return
        cast = _cast_in_chain(node, view) or _cast_of_name(node, view)
        if cast is None:
            return
        wanted = _type_of(cast)
        frequency = view.frequency(node)
        yield Candidate(
            node=node,
            message=f"`{short(node.func, 40)}(...)` loads fp32 weights that line {cast.lineno} casts to {wanted}",
            action=f"pass `dtype={wanted}` to `from_pretrained`",
            confidence=self.confidence,
            frequency=frequency,
            why=(f"`{short(cast, 60)}` casts what was loaded",),
            data=cast,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        load, cast, view = candidate.node, candidate.data, definition.view
        assert isinstance(load, ast.Call) and isinstance(cast, ast.Call)
        name = _keyword_of(view.qualified(load.func) or "", definition.file)
        if name is None or not isinstance(cast.func, ast.Attribute) or len(cast.args) + len(cast.keywords) > 1:
            return None
        if _cast_in_chain(load, view) is not cast:
            return None
        start, end = definition.range(cast.func.value)[1], definition.range(cast)[1]
        wanted = _type_of(cast) if _half_argument(cast) is not None else definition.torch_name(_type_of(cast))
        return Fix(
            title=f"load in `{_type_of(cast)}`",
            safety=Safety.UNSAFE,
            edits=(add_keyword(load, f"{name}={wanted}", definition), Edit(start, end, "")),
            effects=(Effect.NUMERICS,),
            requires=("layers that the library keeps in fp32 may stay so",),
        )


def _keyword_of(loader: str, file: FileView) -> str | None:
    """How a library's ``from_pretrained`` is told the type."""
    if loader.startswith("diffusers."):
        return "torch_dtype"
    if loader.startswith("transformers."):
        version = file.target.transformers
        return "torch_dtype" if version is not None and version < (5, 0) else "dtype"
    return None


def _is_cast(call: ast.Call) -> bool:
    name = callee(call)
    if name in _TYPES:
        return not call.args
    return name == "to" and _half_argument(call) is not None


def _half_argument(call: ast.Call) -> ast.expr | None:
    for arg in [*call.args, *(k.value for k in call.keywords if k.arg in ("dtype",))]:
        if isinstance(arg, ast.Attribute) and arg.attr in ("float16", "half", "bfloat16"):
            return arg
    return None


def _type_of(cast: ast.Call) -> str:
    given = _half_argument(cast)
    if given is not None:
        return ast.unparse(given)
    return "torch.float16" if callee(cast) == "half" else "torch.bfloat16"


def _cast_in_chain(node: ast.Call, view: FunctionView) -> ast.Call | None:
    for parent in ancestors(view, node):
        if isinstance(parent, ast.Call) and _is_cast(parent):
            return parent
        if not isinstance(parent, ast.Attribute | ast.Call):
            return None
    return None


def _cast_of_name(node: ast.Call, view: FunctionView) -> ast.Call | None:
    """``model = X.from_pretrained(...)`` and then ``model.half()`` in the same block."""
    statement = view.statement(node)
    if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
        return None
    target = ast.unparse(statement.targets[0])
    block = getattr(view.parent(statement) or view.node, "body", [])
    if statement not in block:
        return None
    for later in block[block.index(statement) + 1 :][:4]:
        value = getattr(later, "value", None)
        for part in ast.walk(value) if isinstance(value, ast.expr) else ():
            if isinstance(part, ast.Call) and _is_cast(part):
                found = method(part)
                if found is not None and ast.unparse(found[0]) == target:
                    return part
    return None
