"""AWP209 redecode-per-token."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    IDLE,
    ancestors,
    callee,
    frequency_reason,
    judge,
    loop_body,
    lower,
    names_in,
    occasional,
    short,
    target_names,
)

_DECODES = frozenset({"decode", "batch_decode", "convert_ids_to_tokens", "convert_tokens_to_string"})
_TOKENIZER = re.compile(r"(^|_)(tokenizer|processor|tok|vocab(ulary)?)$")
_JOINS = frozenset({"cat", "concat", "concatenate", "hstack"})
_GROWS = frozenset({"append", "extend"})


class RedecodePerToken(Rule):
    """The whole output turned into text again for every token."""

    id = "AWP209"
    name = "redecode-per-token"
    root_cause = RootCause.SCHEDULING
    confidence = Confidence.MEDIUM
    cost_us = 400.0
    event = Event.HOST
    mark = MarkKind.CALL
    words = (b"decode(", b"convert_ids_to_tokens")
    nodes = (ast.Call,)
    calls = _DECODES

    summary = "the whole output is detokenised again for every token"
    what = """
        In a loop over generated tokens, `tokenizer.decode` of the sequence that the loop appends to, instead of the new
        tokens.
        """
    why = """
        The n-th token decodes n tokens: host time grows with the square of the answer, on the thread that also launches
        the next step. A device tensor is read back as well, all of it.
        """
    fine = """
        - Decoding the new token, or a window of the last few (tokens can be parts of a character).
        - Decoding after the loop, below a condition that ends it, or every so many tokens.
        """
    safety = """
        A recommendation only: decode from the last position at which the text was complete, as streamers do
        (`TextIteratorStreamer`, `tokenizers.decoders.DecodeStream`), or once after the loop.
        No diff, since it depends on the tokenizer where a text is complete.
        """
    references = (
        "https://huggingface.co/docs/transformers/main/internal/generation_utils#transformers.TextStreamer",
        "https://huggingface.co/docs/tokenizers/api/decoders",
    )
    bad = """
        import torch
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained("lm")

        @torch.inference_mode()
        def generate(model: torch.nn.Module, token: torch.Tensor, max_new_tokens: int):
            ids, cache = [], None
            for _ in range(max_new_tokens):
                out = model(token, past_key_values=cache)
                cache, token = out.past_key_values, out.logits[:, -1:].argmax(-1)
                ids.append(int(token))
                yield tokenizer.decode(ids)
        """
    good = """
        import torch
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained("lm")

        @torch.inference_mode()
        def generate(model: torch.nn.Module, token: torch.Tensor, max_new_tokens: int):
            ids, cache, done = [], None, 0
            for _ in range(max_new_tokens):
                out = model(token, past_key_values=cache)
                cache, token = out.past_key_values, out.logits[:, -1:].argmax(-1)
                ids.append(int(token))
                text = tokenizer.decode(ids[done:])
                if not text.endswith("\\ufffd"):
                    done = len(ids)
                    yield text
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) not in _DECODES or not isinstance(node.func, ast.Attribute) or not node.args:
            return
        if view.regions(node) & IDLE or not _tokenizer(node.func.value, view):
            return
        loop = next((one for one in view.loops(node) if view.loop_kind(one) is LoopKind.TOKENS), None)
        if not isinstance(loop, ast.For | ast.While) or _ends_loop(node, loop, view):
            return
        whole = _whole(node.args[0], loop)
        if whole is None:
            return
        frequency = view.frequency(node)
        if frequency.known and not frequency.path:
            return
        level = Confidence.LOW if occasional(view, node) else lower(self.confidence, judge(frequency))
        yield Candidate(
            node=node,
            message=f"`{short(node.func, 40)}(…)` turns all of `{whole}` into text for every token",
            action=f"decode only what is new in `{whole}`, or once after the loop",
            confidence=level,
            frequency=frequency,
            why=(f"the loop of line {loop.lineno} appends to `{whole}`", *frequency_reason(frequency)),
        )


def _tokenizer(node: ast.expr, view: FunctionView) -> bool:
    if view.value(node).kind is Kind.TOKENIZER:
        return True
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return _TOKENIZER.search(name.lower()) is not None


def _whole(decoded: ast.expr, loop: ast.For | ast.While) -> str | None:
    """The sequence that grows in the loop, where all of it (less a fixed start) is decoded."""
    inner = decoded
    while True:
        if isinstance(inner, ast.Subscript):
            bounds = [part.lower for part in ast.walk(inner.slice) if isinstance(part, ast.Slice) and part.lower]
            if any(isinstance(b, ast.UnaryOp) or names_in(b) & _bound_in(loop) for b in bounds):
                return None  # a window at the end
            if not any(isinstance(part, ast.Slice) for part in ast.walk(inner.slice)) and not isinstance(
                inner.slice, ast.Constant
            ):
                return None  # one token
            if isinstance(inner.slice, ast.Constant) and inner.slice.value == -1:
                return None
            inner = inner.value
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and not inner.args:
            inner = inner.func.value  # .tolist(), .squeeze()
        else:
            break
    text = ast.unparse(inner)
    return text if isinstance(inner, ast.Name | ast.Attribute) and text in _grown(loop) else None


def _grown(loop: ast.For | ast.While) -> frozenset[str]:
    found: set[str] = set()
    emptied: set[str] = set()
    for statement in loop_body(loop):
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = ast.unparse(node.func.value)
                if node.func.attr in _GROWS:
                    found.add(owner)
                elif node.func.attr in ("clear", "pop", "popleft"):
                    emptied.add(owner)
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.value, ast.List):
                found.add(ast.unparse(node.target))
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                target, value = ast.unparse(node.targets[0]), node.value
                if isinstance(value, ast.Call) and callee(value) in _JOINS and value.args:
                    parts = value.args[0]
                    if isinstance(parts, ast.List | ast.Tuple) and parts.elts and ast.unparse(parts.elts[0]) == target:
                        found.add(target)
                        continue
                if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and ast.unparse(value.left) == target:
                    found.add(target)
                    continue
                emptied.add(target)
    return frozenset(found - emptied)


def _bound_in(loop: ast.For | ast.While) -> frozenset[str]:
    targets = [loop.target] if isinstance(loop, ast.For) else []
    names = set().union(*map(target_names, targets))
    for statement in loop_body(loop):
        names |= target_names(statement)
    return frozenset(names)


def _ends_loop(node: ast.AST, loop: ast.AST, view: FunctionView) -> bool:
    """Whether the block around the node ends the loop: it runs once."""
    child = node
    for parent in ancestors(view, node):
        if parent is loop:
            return False
        for field in ("body", "orelse"):
            block = getattr(parent, field, None)
            if isinstance(block, list) and child in block and isinstance(block[-1], ast.Break | ast.Return | ast.Raise):
                return True
        child = parent
    return False
