"""AWP705 quantisation-candidate."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import IDLE, callee, frequency_reason, short

_HALF = re.compile(r"bfloat16|float16|\.half\(\)|[\"'](bf16|fp16|half|auto)[\"']")
_QUANTISED = re.compile(
    r"quantization_config|load_in_[48]bit|BitsAndBytes|GPTQ|AWQ|awq|gguf|fp8|int8|int4|float8|torchao|quantize_|quanto"
    r"|compressed_tensors|hqq|nf4",
    re.IGNORECASE,
)


class QuantisationCandidate(Rule):
    """Half-precision weights that a decode loop reads whole for every token."""

    id = "AWP705"
    name = "quantisation-candidate"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.LOW
    cost_us = 50.0
    event = Event.LAUNCHES
    mark = MarkKind.CALL
    words = (b".generate(",)
    nodes = (ast.Call,)
    calls = frozenset({"generate"})

    summary = "half-precision weights are read whole for every generated token"
    what = """
        `model.generate(...)` of a causal language model in a file that loads it in half precision and mentions no
        quantisation.
        """
    why = """
        At small batch a decode step is bound by reading the weights once. Weights of half the width are read in half
        the time, and leave memory for a longer cache or a larger batch.
        """
    fine = """
        - Always, until a run shows it: whether the step is bound by memory depends on batch, model and device, and what
          fewer bits cost in quality is not ours to say. No file tells these things, so the finding is shown at low
          confidence only and means something beside a measured bandwidth utilisation.
        - Small models, large batches, prefill-heavy work.
        """
    safety = """
        No automatic rewrite: weight-only FP8, INT8 or INT4, judged on your own quality measure.
        """
    references = ("https://huggingface.co/docs/transformers/main/en/quantization/overview",)
    bad = """
        import torch
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained("lm", dtype=torch.bfloat16).to("cuda").eval()

        def complete(input_ids: torch.Tensor) -> torch.Tensor:
            return model.generate(input_ids.to("cuda"), max_new_tokens=256)

        if __name__ == "__main__":
            while True:
                print(complete(torch.tensor([[int(word) for word in input().split()]])))
        """
    good = """
        import torch
        from transformers import AutoModelForCausalLM, BitsAndBytesConfig

        config = BitsAndBytesConfig(load_in_8bit=True)
        model = AutoModelForCausalLM.from_pretrained("lm", quantization_config=config).eval()

        def complete(input_ids: torch.Tensor) -> torch.Tensor:
            return model.generate(input_ids.to("cuda"), max_new_tokens=256)

        if __name__ == "__main__":
            while True:
                print(complete(torch.tensor([[int(word) for word in input().split()]])))
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) != "generate" or not isinstance(node.func, ast.Attribute):
            return
        owner = view.value(node.func.value)
        if owner.kind is not Kind.MODULE or "CausalLM" not in (owner.cls or ""):
            return
        if not _HALF.search(file.text) or _QUANTISED.search(file.text) or view.regions(node) & IDLE:
            return
        frequency = view.frequency(node)
        model = short(node.func.value, 30)
        yield Candidate(
            node=node,
            message=f"every token reads all half-precision weights of `{model}`",
            action=f"if a run shows memory-bound decoding, try weight-only quantisation of `{model}`",
            confidence=Confidence.LOW,
            frequency=frequency,
            why=frequency_reason(frequency),
        )
