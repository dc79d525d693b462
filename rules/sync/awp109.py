"""AWP109 stop-check."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Event, Fix, MarkKind, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    frequency_reason,
    hot_frequency,
    loop_body,
    maybe_device,
    occasional,
    reasons,
    short,
    sureness,
)
from awp_lint.rules.sync.reads import device_read, is_token_read

_STOP = re.compile(r"(^|_)(eos|eot|stop(ped|ping)?|(un)?finished|done|end(ed)?|pad|alive)(_|s?$)", re.IGNORECASE)


if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition


class StopCheck(Rule):
    """A blocking end-of-sequence check for every token."""

    id = "AWP109"
    name = "stop-check"
    root_cause = RootCause.RUNTIME
    cost_us = 80.0
    event = Event.WAIT
    words = (b"eos", b"finished", b"stop", b"done", b"end")
    nodes = (ast.For, ast.While)
    repeated = True
    doubted = True
    over = ("AWP101", "AWP102")

    summary = "a decode loop asks the device for every token whether to stop"
    what = """
        A loop over generated tokens whose stop condition is computed on the device and tested by Python at every token
        (`if finished.all()`, `while not done.any()`), once or more often.
        """
    why = """
        The host can queue the next step only after the device has answered, so nothing hides the launches of a step.
        """
    fine = """
        - A check of the token that is read anyway to be streamed or appended in Python.
        - A loop over blocks of tokens, each written by steps of its own: low confidence.
        - A check every k tokens, or of a flag that an asynchronous copy brought.
        """
    safety = """
        Unsafe: in a counted loop a check that does nothing but `break` is made at every 8th pass, where up to seven
        passes after the end do no harm. Otherwise a recommendation: copy the flag asynchronously and look at the one
        of the step before, or test the token that is read anyway.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
        "huggingface/transformers#46693 how reads in generation were weighed",
    )
    bad = """
        import torch

        @torch.no_grad()
        def generate(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int, eos: int) -> torch.Tensor:
            input_ids = input_ids.cuda()
            for _ in range(max_new_tokens):
                tokens = model(input_ids)[:, -1].argmax(-1)
                input_ids = torch.cat([input_ids, tokens[:, None]], dim=1)
                if (tokens == eos).all():
                    break
            return input_ids
        """
    good = """
        import torch

        @torch.no_grad()
        def generate(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int, eos: int) -> torch.Tensor:
            input_ids = input_ids.cuda()
            for step in range(max_new_tokens):
                tokens = model(input_ids)[:, -1].argmax(-1)
                input_ids = torch.cat([input_ids, tokens[:, None]], dim=1)
                if step % 16 == 15 and (input_ids[:, -16:] == eos).any(dim=1).all():
                    break
            return input_ids
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.For | ast.While)
        if view.loop_kind(node) is not LoopKind.TOKENS:
            return
        checks = list(_stop_checks(node, view))
        if not checks:
            return
        first = checks[0]
        frequency = hot_frequency(view, first)
        if frequency is None:
            return
        read = next(
            (
                found
                for call in view.nodes(ast.Call)
                if isinstance(call, ast.Call)
                and view.loops(call)[:1] == (node,)
                and (found := device_read(call, view)) is not None
                and is_token_read(found, view)
            ),
            None,
        )
        times = f"{len(checks)} times" if len(checks) > 1 else "once"
        action = f"check every few tokens, or copy `{short(first, 30)}` asynchronously and look at the last step's"
        if read is not None:
            action = f"test the token that `{short(read.call, 30)}` reads anyway"
        value = view.value(first)
        confidence = sureness(view, first, frequency, value)
        if _writes_blocks(node, view):
            confidence = Confidence.LOW
        yield Candidate(
            node=first,
            message=f"`{short(first)}` asks the device {times} for every token whether to stop",
            action=action,
            confidence=confidence,
            frequency=frequency,
            why=(*reasons(value, first), *frequency_reason(frequency)),
            mark=MarkKind.STATEMENT,
            covers=tuple(checks),
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.sync.branches import stop_check

        branch = definition.view.statement(candidate.node)
        return stop_check(branch, definition) if isinstance(branch, ast.If) else None


def _writes_blocks(loop: ast.For | ast.While, view: FunctionView) -> bool:
    """Whether a pass runs a loop of steps of its own: it then writes a block of tokens, and asks once a block."""
    return any(
        other is not loop and loop in view.loops(other) and _decodes(other, view)
        for other in view.nodes(ast.For, ast.While)
    )


def _decodes(loop: ast.AST, view: FunctionView) -> bool:
    """Whether a loop makes steps by what it is, or since it stops by itself when the device says so."""
    assert isinstance(loop, ast.For | ast.While)
    if view.loop_kind(loop) in (LoopKind.STEPS, LoopKind.TOKENS):
        return True
    return next(_stop_checks(loop, view), None) is not None


def _stop_checks(loop: ast.For | ast.While, view: FunctionView) -> Iterator[ast.expr]:
    """Tests of device tensors that decide whether the loop goes on, once a pass each."""
    if isinstance(loop, ast.While):
        yield from _device_parts(loop.test, view)
    for statement in loop_body(loop):
        for part in ast.walk(statement):
            if not isinstance(part, ast.If) or view.loops(part)[:1] != (loop,):
                continue
            if _leaves(part) and not occasional(view, part):
                yield from _device_parts(part.test, view)


def _leaves(branch: ast.If) -> bool:
    return any(isinstance(s, ast.Break | ast.Return) for s in [*branch.body, *branch.orelse])


def _device_parts(test: ast.expr, view: FunctionView) -> Iterator[ast.expr]:
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    for part in parts:
        inner = part.operand if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not) else part
        source = inner
        if isinstance(inner, ast.Call):
            read = device_read(inner, view)
            source = read.source if read is not None else inner
        if maybe_device(view.value(source)) and _about_stopping(inner) and not occasional(view, inner):
            yield inner


def _about_stopping(node: ast.expr) -> bool:
    for part in ast.walk(node):
        name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
        if _STOP.search(name):
            return True
    return False
