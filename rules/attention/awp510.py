"""AWP510 prefix-recompute."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.batching.calls import model_call
from awp_lint.rules.common import (
    IDLE,
    argument,
    callee,
    frequency_reason,
    loop_body,
    names_in,
    opaque,
    short,
    target_names,
)

_GROWS = frozenset({"append", "extend"})
_CACHES = ("past_key_values", "cache", "kv_cache", "prompt_cache", "session")


class PrefixRecompute(Rule):
    """A chat loop that prefills the whole history at every turn."""

    id = "AWP510"
    name = "prefix-recompute"
    root_cause = RootCause.MEMORY
    confidence = Confidence.MEDIUM
    cost_us = 20000.0
    event = Event.LAUNCHES
    mark = MarkKind.CALL
    words = (b"generate(",)
    nodes = (ast.Call,)
    calls = frozenset({"generate"})
    anywhere = True

    summary = "the whole chat history is prefilled again at every turn"
    what = """
        A loop over turns that appends questions and answers to a history, and calls `generate` with all of it and no
        cache.
        """
    why = """
        Keys and values of the earlier turns are computed again each time: the time to the first token grows with the
        conversation, and the answer given last was computed a moment ago.
        """
    fine = """
        - Serving engines with a prefix cache (vLLM, SGLang, TGI) reuse the prefix by themselves.
        - One turn; a history that is cut or rewritten between turns.
        - A system prompt that many requests share is recomputed as well, but whether requests meet in one process and
          how long it is, no code tells: that is left to the profile.
        """
    safety = """
        A recommendation only: keep one cache a conversation and pass it (`past_key_values=cache`), so that only the new
        turn is prefilled. Costs memory for each conversation that is open.
        """
    references = (
        "https://huggingface.co/docs/transformers/kv_cache",
        "https://docs.vllm.ai/en/latest/features/automatic_prefix_caching.html",
    )
    bad = """
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained("lm")
        model = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()

        def chat():
            messages = []
            while True:
                messages.append({"role": "user", "content": input("> ")})
                ids = tokenizer.apply_chat_template(messages, return_tensors="pt").to("cuda")
                out = model.generate(ids, max_new_tokens=256)
                answer = tokenizer.decode(out[0, ids.shape[1] :])
                messages.append({"role": "assistant", "content": answer})
                print(answer)
        """
    good = """
        from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

        tokenizer = AutoTokenizer.from_pretrained("lm")
        model = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()

        def chat():
            messages, cache = [], DynamicCache()
            while True:
                messages.append({"role": "user", "content": input("> ")})
                ids = tokenizer.apply_chat_template(messages, return_tensors="pt").to("cuda")
                out = model.generate(ids, max_new_tokens=256, past_key_values=cache)
                answer = tokenizer.decode(out[0, ids.shape[1] :])
                messages.append({"role": "assistant", "content": answer})
                print(answer)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) != "generate" or view.regions(node) & IDLE:
            return
        loop = next((one for one in view.loops(node) if isinstance(one, ast.For | ast.While)), None)
        if loop is None or view.loop_kind(loop) in (LoopKind.TOKENS, LoopKind.LAYERS, LoopKind.STEPS):
            return
        if any(argument(node, None, name) is not None for name in _CACHES):
            return
        history = _history(node, loop, view)
        if history is None or model_call(node, view) is None:
            return
        assert isinstance(node.func, ast.Attribute)
        known = view.value(node.func.value).kind is Kind.MODULE
        unsure = not known or (opaque(node) and _hides_cache(node, view))
        frequency = view.frequency(node)
        yield Candidate(
            node=node,
            message=f"`{short(node.func, 40)}(...)` prefills all of `{history}` again at every turn",
            action="keep the cache of the conversation and pass it (`past_key_values=cache`)",
            confidence=Confidence.LOW if unsure else self.confidence,
            frequency=frequency,
            why=(f"the loop of line {loop.lineno} appends to `{history}`", *frequency_reason(frequency)),
        )


def _history(call: ast.Call, loop: ast.For | ast.While, view: FunctionView) -> str | None:
    """The history that the loop appends the call's own result to, and that the call is fed with, whole."""
    made = _after(target_names(view.statement(call)), loop)
    grown, reset = _grown(loop, made)
    feeding = frozenset().union(*map(names_in, [*call.args, *(k.value for k in call.keywords)]))
    sources = _before(feeding, loop)
    return next((name for name in sorted(grown - reset) if name in sources), None)


def _grown(loop: ast.For | ast.While, made: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Names to which the loop appends something of ``made``, and names that it binds anew or cuts."""
    grown: set[str] = set()
    reset: set[str] = set()
    for statement in loop_body(loop):
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = ast.unparse(node.func.value)
                if node.func.attr in _GROWS and any(names_in(a) & made for a in node.args):
                    grown.add(owner)
                elif node.func.attr in ("pop", "clear", "remove"):
                    reset.add(owner)
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and names_in(node.value) & made:
                grown.add(ast.unparse(node.target))
            elif isinstance(node, ast.Assign):
                reset.update(ast.unparse(target) for target in node.targets if isinstance(target, ast.Name))
            elif isinstance(node, ast.Delete):
                reset.update(ast.unparse(t.value) for t in node.targets if isinstance(t, ast.Subscript))
    return frozenset(grown), frozenset(reset)


def _after(names: frozenset[str], loop: ast.For | ast.While) -> frozenset[str]:
    """The names, and all that the loop computes from them."""
    reached = set(names)
    for _ in range(2):
        for statement in loop_body(loop):
            for node in ast.walk(statement):
                if isinstance(node, ast.Assign) and names_in(node.value) & reached:
                    reached.update(*map(target_names, node.targets))
    return frozenset(reached)


def _before(names: frozenset[str], loop: ast.For | ast.While) -> frozenset[str]:
    """The names, and all from which the loop computes them."""
    reached = set(names)
    for _ in range(3):
        for statement in loop_body(loop):
            for node in ast.walk(statement):
                if isinstance(node, ast.Assign) and frozenset().union(*map(target_names, node.targets)) & reached:
                    reached |= names_in(node.value)
    return frozenset(reached)


def _hides_cache(call: ast.Call, view: FunctionView) -> bool:
    """Whether ``**kwargs`` may hold a cache: only what is built in this definition without one surely does not."""
    hidden = [keyword.value for keyword in call.keywords if keyword.arg is None]
    return any(view.value(value).kind is not Kind.ENCODING for value in hidden)
