"""AWP502 eager-attention."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, MarkKind, RootCause, Safety
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import IDLE, callee, lower, short

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

#: Arguments that choose the slow implementation, with the value that does so.
_SWITCHES: dict[str, object] = {
    "attn_implementation": "eager",
    "_attn_implementation": "eager",
    "use_flash_attention": False,
    "use_flash_attention_2": False,
    "use_flash_attn": False,
    "enable_flash_attn": False,
    "enable_xformers": False,
}
_NEEDS_WEIGHTS = re.compile(r"output_attentions\s*=\s*True|\.attentions\b|return_attention|rollout")


class EagerAttention(Rule):
    """The unfused implementation of attention asked for by name."""

    id = "AWP502"
    name = "eager-attention"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.MEDIUM
    cost_us = 3000.0
    event = Event.LAUNCHES
    mark = MarkKind.CALL
    words = (b"attn_implementation", b"use_flash", b"enable_flash", b"enable_xformers")
    anywhere = True
    nodes = (ast.Call,)

    summary = "a model is built with the unfused implementation of attention"
    what = """
        `attn_implementation="eager"`, `use_flash_attention=False` and the like where a model is built, in a file that
        does not ask for the attention weights.
        """
    why = """
        The eager implementation writes and reads the whole score matrix in every layer; SDPA, the default, does not.
        """
    fine = """
        - The weights are needed (`output_attentions=True`), or the model has no fused form.
        - Reference runs, tests, export.
        - Around a bug of a backend: then say so in a suppression.
        """
    safety = """
        Unsafe: `attn_implementation="eager"` becomes `"sdpa"`. Numbers differ in the last bits, and the weights are no
        longer returned. Where lengths vary from call to call, see AWP501 for cuDNN's plans. Other switches get a
        recommendation.
        """
    tolerance = 16
    references = (
        "https://huggingface.co/docs/transformers/attention_interface",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
    )
    bad = """
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained("lm", attn_implementation="eager").to("cuda")
        """
    good = """
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained("lm", attn_implementation="sdpa").to("cuda")
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        for keyword in node.keywords:
            if keyword.arg not in _SWITCHES or not isinstance(keyword.value, ast.Constant):
                continue
            if keyword.value.value != _SWITCHES[keyword.arg]:
                continue
            if view.regions(node) & (IDLE | Region.FALLBACK):
                return
            confidence = self.confidence
            builds = callee(node).startswith(("from_pretrained", "from_config", "pipeline", "load"))
            if _NEEDS_WEIGHTS.search(file.text) or not (builds or callee(node)[:1].isupper()):
                confidence = lower(confidence, Confidence.LOW)
            wanted = f"{keyword.arg}={ast.unparse(keyword.value)}"
            yield Candidate(
                node=node,
                message=f"`{short(node.func, 40)}(...)` asks for unfused attention: `{wanted}`",
                action=f"delete `{wanted}`, or say why it is there",
                confidence=confidence,
                frequency=view.frequency(node),
                why=("nothing in this file uses the attention weights",),
                data=keyword,
            )
            return

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        keyword = candidate.data
        if not isinstance(keyword, ast.keyword) or keyword.arg not in ("attn_implementation", "_attn_implementation"):
            return None  # a switch of somebody else's: what its other side needs is not known
        return Fix(
            title='ask for fused attention: `"sdpa"`',
            safety=Safety.UNSAFE,
            edits=(definition.replace(keyword.value, '"sdpa"'),),
            effects=(Effect.NUMERICS, Effect.STRUCTURE),
            requires=("the model has fused attention, and nobody reads attention weights",),
        )
