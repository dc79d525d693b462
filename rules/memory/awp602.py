"""AWP602 create-then-move."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, MarkKind, RootCause, Safety
from awp_lint.detector.semantics.values import Certainty
from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    ancestors,
    assigned_name,
    callee,
    frequency_reason,
    hot_frequency,
    judge,
    lower,
    often,
    per_item_only,
    short,
    sureness,
    whole_program,
)
from awp_lint.rules.memory.factories import (
    COMPUTED,
    FACTORIES,
    LIKE,
    RANDOM,
    SAME_ANYWHERE,
    Move,
    host_factory,
    host_origins,
    is_integer,
    lives_on_host,
    move,
)

if TYPE_CHECKING:
    import libcst as cst

    from awp_lint.rules.nodemap import Definition

#: Functions that work out the parameters of a table in constructors, and what is nested in them.
_INITIALISES = re.compile(r"(^|[._])(compute|init)_\w*(param(eter)?s|freqs?)(\.|$)")


@dataclass(frozen=True, slots=True)
class _Chained:
    """``factory(...).to(...)`` in one expression."""

    move: Move
    made: ast.Call
    factory: str
    same_bits: bool  # integer arange, or a factory whose values need no arithmetic, without a cast


class CreateThenMove(Rule):
    """A tensor made on the host and copied to the device, where the device could have made it."""

    id = "AWP602"
    name = "create-then-move"
    root_cause = RootCause.MEMORY
    cost_us = 40.0
    event = Event.COPY
    mark = MarkKind.CALL
    words = (b".to(", b".cuda(")
    nodes = (ast.Call,)
    calls = FACTORIES | {"to", "cuda"}
    repeated = True
    over = ("AWP306", "AWP603", "AWP606")

    summary = "a tensor is made on the CPU and then moved to the device"
    what = """
        `torch.zeros(...).to(device)` and the like (`ones`, `empty`, `full`, `eye`, `arange`, `linspace`, random
        factories), chained or through a local name, in code that runs for every step, token, layer or item.
        """
    why = """
        The host fills the tensor, copies it from pageable memory, and waits until the copy is done. With `device=` the
        device fills it itself, by one small kernel that nobody waits for.
        """
    fine = """
        - Set-up code, what works out the parameters of a rotary table by its name, and once a request.
        - Moves to the CPU, and casts (`.to(torch.float16)`).
        - Data that comes from the host anyway: tokenizer output, lists, NumPy arrays (AWP601, AWP603).
        - Random tensors made on the CPU on purpose, so that one seed gives the same numbers on every device: shown at
          low confidence, never rewritten.
        """
    safety = """
        Safe for `zeros`, `ones`, `empty`, `full`, `eye` and integer `arange` without a change of type: same values,
        same type, same shape. With a cast, and for computed factories (`linspace`, float `arange`), the values may
        differ in the last bit: unsafe. Random factories and tensors that are worked on before the move get a
        recommendation.
        """
    references = (
        "huggingface/transformers#20061 a constant made on the device",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    )
    bad = """
        import torch

        class Decoder(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    positions = torch.arange(hidden_states.shape[1]).to(hidden_states.device)
                    hidden_states = layer(hidden_states, positions)
                return hidden_states
        """
    good = """
        import torch

        class Decoder(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                positions = torch.arange(hidden_states.shape[1], device=hidden_states.device)
                for layer in self.layers:
                    hidden_states = layer(hidden_states, positions)
                return hidden_states
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        moved = move(node, view)
        if moved is None:
            yield from _moved_by_callers(node, view, file)
            return
        factory = host_factory(moved.made, view)
        if factory is None and not lives_on_host(moved.made, view):
            return
        origins = frozenset({factory}) if factory else host_origins(moved.made, view)
        if not origins or origins - SAME_ANYWHERE - COMPUTED - RANDOM - LIKE:
            return
        frequency = hot_frequency(view, node)
        if frequency is None:
            return
        confidence = _confidence(moved, frequency, view)
        if origins & RANDOM or view.regions(node) & Region.FALLBACK or per_item_only(frequency):
            confidence = lower(confidence, Confidence.LOW)
        where = _device_text(moved)
        chained = None
        if factory is not None and isinstance(moved.made, ast.Call) and factory not in RANDOM:
            chained = _Chained(moved, moved.made, factory, _same_bits(moved, moved.made, factory, view))
        made = short(moved.made, 40)
        action = f"make {'it' if factory else f'the parts of `{made}`'} there with `device={where}`"
        yield Candidate(
            node=node,
            message=f"`{made}` is made on the CPU and copied to the device {often(frequency)}".rstrip(),
            action=action,
            confidence=confidence,
            frequency=frequency,
            why=(
                f"`{made}` is made by `torch.{'`, `torch.'.join(sorted(origins))}` without `device=`",
                *frequency_reason(frequency),
            ),
            covers=(moved.made,),
            data=chained,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        import libcst as cst

        chained = candidate.data
        if not isinstance(chained, _Chained):
            return None
        call = definition.node(chained.move.call)
        made = definition.node(chained.made)
        if not (isinstance(call, cst.Call) and isinstance(made, cst.Call) and _known_keywords(call)):
            return None
        if any(arg.keyword is not None and arg.keyword.value in ("pin_memory", "out", "layout") for arg in made.args):
            return None
        wanted = _new_arguments(chained, definition)
        if wanted is None:
            return None
        args = [arg for arg in made.args if arg.keyword is None or arg.keyword.value not in wanted]
        edit = definition.replace(chained.move.call, made.with_changes(args=_with_keywords(args, wanted)))
        safe = chained.same_bits
        return Fix(
            title=f"make it on the device: `device={_device_text(chained.move)}` in `torch.{chained.factory}`",
            safety=Safety.SAFE if safe else Safety.UNSAFE,
            edits=(edit,),
            effects=() if safe else (Effect.NUMERICS,),
        )


def _moved_by_callers(node: ast.Call, view: FunctionView, file: FileView) -> Iterator[Candidate]:
    """The first factory of a function that returns what it made on the host, and whose callers move it."""
    name = host_factory(node, view)
    if name is None or name in RANDOM or not isinstance(view.node, ast.FunctionDef) or not lives_on_host(node, view):
        return
    if view.loops(node) or _first_factory(view) is not node or not _returns_host(view):
        return
    if _INITIALISES.search(view.qualname):
        return
    mover = _mover(view, file)
    frequency = hot_frequency(view, node)
    if mover is None or frequency is None or per_item_only(frequency):
        return
    if whole_program(frequency):
        return  # AWP603 speaks of the copy where it is made
    function = view.node.name
    yield Candidate(
        node=node,
        message=f"`{function}` builds its result on the CPU {often(frequency)}; line {mover.lineno} moves it",
        action=f"give `{function}` a device and pass it to `torch.{name}`",
        confidence=lower(sureness(view, node, frequency), Confidence.MEDIUM),
        frequency=frequency,
        why=(f"`torch.{name}` has no `device=`", *frequency_reason(frequency)),
    )


def _first_factory(view: FunctionView) -> ast.AST | None:
    calls = (node for node in view.nodes(ast.Call) if isinstance(node, ast.Call))
    return next((call for call in calls if host_factory(call, view) is not None), None)


def _returns_host(view: FunctionView) -> bool:
    """Whether a tensor is returned, and none that is on the device."""
    returned = [node.value for node in view.nodes(ast.Return) if isinstance(node, ast.Return)]
    values = [view.value(value) for value in returned if value is not None]
    tensors = [value for value in values if value.is_tensor]
    return bool(tensors) and not any(value.on_device for value in tensors)


def _mover(view: FunctionView, file: FileView) -> ast.Call | None:
    """A call in this file that moves to the device what the function returns."""
    assert isinstance(view.node, ast.FunctionDef)
    for other in file.functions():
        for call in other.nodes(ast.Call):
            assert isinstance(call, ast.Call)
            if callee(call) != view.node.name:
                continue
            for moved in _chain_moves(call, other):
                return moved
            bound = assigned_name(other, call)
            for use in other.uses(bound) if bound is not None else ():
                if other.parent(use) is not None:
                    for moved in _chain_moves(use, other):
                        return moved
    return None


def _chain_moves(node: ast.AST, view: FunctionView) -> Iterator[ast.Call]:
    for parent in ancestors(view, node):
        if isinstance(parent, ast.Call) and move(parent, view) is not None:
            yield parent
        if not isinstance(parent, ast.Attribute | ast.Call):
            return


def _confidence(moved: Move, frequency: Frequency, view: FunctionView) -> Confidence:
    result = view.value(moved.call)
    if result.on_device:
        return judge(frequency, result)
    # The target is a device variable: ambient, as devices of models are.
    ambient = Certainty.ASSUMED
    return judge(Frequency(frequency.path, min(frequency.certainty, ambient), frequency.chain))


def _device_text(moved: Move) -> str:
    if moved.like is not None:
        return f"{short(moved.like, 40)}.device"
    return short(moved.device, 40) if moved.device is not None else '"cuda"'


def _same_bits(moved: Move, made: ast.Call, factory: str, view: FunctionView) -> bool:
    if moved.dtype is not None or moved.like is not None:
        # Even where the type stays the same nobody shows it here.
        return factory in ("zeros", "ones", "empty", "eye") and moved.like is None
    return factory in SAME_ANYWHERE or (factory == "arange" and is_integer(made, view))


def _with_keywords(args: list[cst.Arg], wanted: dict[str, cst.BaseExpression]) -> list[cst.Arg]:
    """The arguments and new keywords behind them, laid out as the call was."""
    import libcst as cst

    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    added = [cst.Arg(value, cst.Name(name), equal) for name, value in wanted.items()]
    if not args:
        return added
    between = args[0].comma if len(args) > 1 else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    last, tail = args[-1].comma, args[-1].whitespace_after_arg  # the bracket may stand on a line of its own
    before = args[-1].with_changes(comma=between, whitespace_after_arg=cst.SimpleWhitespace(""))
    result = [*args[:-1], before, *(arg.with_changes(comma=between) for arg in added)]
    return [*result[:-1], result[-1].with_changes(comma=last, whitespace_after_arg=tail)]


def _known_keywords(call: cst.Call) -> bool:
    """Only arguments whose meaning the rewrite keeps."""
    return all(
        arg.star == "" and (arg.keyword is None or arg.keyword.value in ("device", "dtype", "other", "non_blocking"))
        for arg in call.args
    )


def _new_arguments(chained: _Chained, definition: Definition) -> dict[str, cst.BaseExpression] | None:
    """Keyword arguments that the factory takes over from the move."""
    import libcst as cst

    moved = chained.move
    wanted: dict[str, cst.BaseExpression] = {}
    if moved.like is not None:
        tensor = definition.node(moved.like)
        if not isinstance(tensor, cst.Name | cst.Attribute):
            return None
        wanted["device"] = cst.Attribute(tensor, cst.Name("device"))
        wanted["dtype"] = cst.Attribute(tensor, cst.Name("dtype"))
    elif moved.device is None:
        wanted["device"] = cst.SimpleString('"cuda"')
    else:
        device = definition.node(moved.device)
        if not isinstance(device, cst.BaseExpression):
            return None
        wanted["device"] = device
    if moved.dtype is not None:
        dtype = definition.node(moved.dtype)
        if not isinstance(dtype, cst.BaseExpression):
            return None
        wanted["dtype"] = dtype
    return wanted
