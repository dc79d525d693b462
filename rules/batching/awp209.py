"""AWP209 redecode-per-token."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, Level, LoopKind
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
#: What a token runs: a pass of a loop, or a method.
_Repeated = ast.For | ast.While | ast.FunctionDef


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
        In a loop over generated tokens, or in a method that is called for each, `tokenizer.decode` of the sequence that
        it appends to, instead of the new tokens.
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
        loop = _each_token(node, view)
        if loop is None or _ends_loop(node, loop, view):
            return
        whole = _whole(node.args[0], loop)
        if whole is None or (isinstance(loop, ast.FunctionDef) and not whole.startswith("self.")):
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
            why=(
                f"the {'method' if isinstance(loop, ast.FunctionDef) else 'loop'} of line {loop.lineno} appends to"
                f" `{whole}`",
                *frequency_reason(frequency),
            ),
        )


def _each_token(node: ast.AST, view: FunctionView) -> _Repeated | None:
    """The loop over tokens that a node stands in, or the method that is called for each of them."""
    loop = next((one for one in view.loops(node) if view.loop_kind(one) is LoopKind.TOKENS), None)
    if loop is None and view.class_name is not None and view.frequency(view.node).path[-1:] == (Level.TOKEN,):
        return view.node if isinstance(view.node, ast.FunctionDef) else None
    return loop if isinstance(loop, ast.For | ast.While) else None


def _passes(repeated: _Repeated) -> Sequence[ast.AST]:
    return repeated.body if isinstance(repeated, ast.FunctionDef) else loop_body(repeated)


def _tokenizer(node: ast.expr, view: FunctionView) -> bool:
    if view.value(node).kind is Kind.TOKENIZER:
        return True
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return _TOKENIZER.search(name.lower()) is not None


def _whole(decoded: ast.expr, loop: _Repeated) -> str | None:
    """The sequence that grows in the loop, where all of it (less a fixed start) is decoded."""
    inner = decoded
    while True:
        if isinstance(inner, ast.Subscript):
            bounds = [part.lower for part in ast.walk(inner.slice) if isinstance(part, ast.Slice) and part.lower]
            if any(isinstance(b, ast.UnaryOp) or _moves(b, loop) for b in bounds):
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


def _moves(bound: ast.expr, loop: _Repeated) -> bool:
    """Whether a pass moves a bound: a name that it binds, an attribute that it writes."""
    if names_in(bound) & _bound_in(loop):
        return True
    written = {ast.unparse(node) for statement in _passes(loop) for node in ast.walk(statement)
               if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}  # fmt: skip
    return any(isinstance(part, ast.Attribute) and ast.unparse(part) in written for part in ast.walk(bound))


def _grown(loop: _Repeated) -> frozenset[str]:
    found: set[str] = set()
    emptied: set[str] = set()
    for statement in _passes(loop):
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


def _bound_in(loop: _Repeated) -> frozenset[str]:
    targets = [loop.target] if isinstance(loop, ast.For) else []
    names = set().union(*map(target_names, targets))
    for statement in _passes(loop):
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
