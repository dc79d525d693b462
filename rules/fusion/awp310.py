"""AWP310 unmerged-lora."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.finding import Confidence, Edit, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import argument, callee, frequency_reason, short
from awp_lint.rules.edits import insert_after
from awp_lint.rules.nodemap import Definition

_MERGES = re.compile(
    r"merge_and_unload|merge_adapter|fuse_lora|add_weighted_adapter|set_adapters?\b|unload_lora|disable_adapter"
    r"|delete_adapter|enable_lora|load_adapter\(|hotswap|unmerge_adapter"
)
_TRAINS = re.compile(
    r"\.backward\(|Trainer\b|get_peft_model|optim(izer)?\.|\.save_pretrained\(|is_trainable\s*=\s*True"
)
_QUANTISED = re.compile(r"load_in_(4|8)bit|BitsAndBytesConfig|quantization_config|GPTQ|awq|gguf", re.IGNORECASE)
_PEFT = frozenset({"PeftModel", "PeftModelForCausalLM", "AutoPeftModelForCausalLM", "AutoPeftModel", "PeftMixedModel"})


@dataclass(frozen=True, slots=True)
class _Load:
    """Where an adapter is loaded: ``owner`` is the pipeline of ``pipe.load_lora_weights(…)``, None for PEFT."""

    call: ast.Call
    owner: ast.expr | None


class UnmergedLora(Rule):
    """One adapter loaded and left unmerged."""

    id = "AWP310"
    name = "unmerged-lora"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.MEDIUM
    cost_us = 5000.0
    event = Event.NONE
    words = (b"PeftModel", b"load_lora_weights")
    anywhere = True
    nodes = (ast.Call,)
    calls = frozenset({"load_lora_weights", "from_pretrained"})

    summary = "an adapter is served unmerged although there is only one"
    what = """
        `PeftModel.from_pretrained(...)` or `pipe.load_lora_weights(...)` once in a program that neither merges nor
        switches adapters and does not train.
        """
    why = """
        An unmerged adapter adds two small products, a scale and an addition to every adapted linear layer: three to
        four launches a layer and projection, which in a small-batch step weighs more than the layer itself. Merged,
        the weights are as large as before and there is nothing to add.
        """
    fine = """
        - Several adapters, or ones that are switched, weighted, disabled or saved.
        - Quantised base weights: merging would round the adapter away. Shown at low confidence.
        - Training.
        """
    safety = """
        Unsafe: sums are rounded in another order, and the base weights are gone afterwards.
        """
    tolerance = 16
    references = (
        "https://huggingface.co/docs/peft/package_reference/lora",
        "https://huggingface.co/docs/diffusers/tutorials/using_peft_for_inference",
    )
    bad = """
        import torch
        from peft import PeftModel
        from transformers import AutoModelForCausalLM

        base = AutoModelForCausalLM.from_pretrained("base", torch_dtype=torch.bfloat16)
        model = PeftModel.from_pretrained(base, "adapter")
        model.to("cuda").eval()

        def complete(input_ids: torch.Tensor) -> torch.Tensor:
            return model.generate(input_ids.to("cuda"), max_new_tokens=64)
        """
    good = """
        import torch
        from peft import PeftModel
        from transformers import AutoModelForCausalLM

        base = AutoModelForCausalLM.from_pretrained("base", torch_dtype=torch.bfloat16)
        model = PeftModel.from_pretrained(base, "adapter").merge_and_unload()
        model.to("cuda").eval()

        def complete(input_ids: torch.Tensor) -> torch.Tensor:
            return model.generate(input_ids.to("cuda"), max_new_tokens=64)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        found = _load(node, view)
        if found is None or _MERGES.search(file.text) or _TRAINS.search(file.text):
            return
        if view.regions(node) & (Region.TEST | Region.TRAINING | Region.TIMED) or _loads(file) != 1:
            return
        if view.loops(node):
            return
        frequency = view.frequency(node)
        confidence = Confidence.LOW if _QUANTISED.search(file.text) else self.confidence
        if not _runs(file):
            confidence = Confidence.LOW
        merge = "merge_and_unload()" if found.owner is None else "fuse_lora()"
        target = short(found.owner, 30) if found.owner is not None else "the loaded model"
        yield Candidate(
            node=node,
            message=f"the adapter of `{short(node, 50)}` stays unmerged: every adapted layer runs two more products",
            action=f"call `{merge}` on {target if found.owner is None else f'`{target}`'} after loading",
            confidence=confidence,
            frequency=frequency,
            why=("the file loads one adapter and never switches it", *frequency_reason(frequency)[:1]),
            data=found,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        found = candidate.data
        if not isinstance(found, _Load) or candidate.confidence is Confidence.LOW:
            return None
        definition.node(found.call)
        end = definition.range(found.call)[1]
        if found.owner is None:
            edit = Edit(end, end, ".merge_and_unload()")
        else:
            statement = definition.view.statement(found.call)
            if not isinstance(statement, ast.Expr) or statement.value is not found.call:
                return None
            below = insert_after(statement, f"{definition.text(found.owner)}.fuse_lora()", definition)
            if below is None:
                return None
            edit = below
        return Fix(
            title="merge the adapter into the weights",
            safety=Safety.UNSAFE,
            edits=(edit,),
            effects=(Effect.NUMERICS, Effect.STRUCTURE),
            requires=("one adapter is served, never switched",),
        )


def _load(call: ast.Call, view: FunctionView) -> _Load | None:
    name = callee(call)
    if name == "load_lora_weights" and isinstance(call.func, ast.Attribute):
        return None if argument(call, None, "adapter_name") is not None else _Load(call, call.func.value)
    if name == "from_pretrained" and isinstance(call.func, ast.Attribute):
        owner = call.func.value
        dotted = view.qualified(owner) or ""
        if dotted.rpartition(".")[2] in _PEFT and dotted.startswith("peft."):
            return _Load(call, None)
    return None


def _loads(file: FileView) -> int:
    return len(re.findall(r"\.load_lora_weights\(|\b(?:Auto)?Peft\w*\.from_pretrained\(", file.text))


def _runs(file: FileView) -> bool:
    """Whether the program uses what it loads: it generates, or calls a pipeline."""
    return re.search(r"\.generate\(|pipe\w*\(|pipeline\(|\.forward\(|model\(", file.text) is not None
