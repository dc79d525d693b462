"""AWP804 eager-engine."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Effect, Fix, RootCause, Safety
from awp_lint.rules.base import Candidate
from awp_lint.rules.edits import drop_keyword
from awp_lint.rules.serving.enginerule import EngineRule

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition


class EagerEngine(EngineRule):
    """A serving engine runs without CUDA graphs."""

    id = "AWP804"
    name = "eager-engine"
    root_cause = RootCause.RUNTIME
    confidence = Confidence.MEDIUM
    words = (
        b"enforce_eager",
        b"disable_cuda_graph",
        b"eager_mode",
        b"optimization_level",
        b"cuda_graph",
    )

    effect = "runs every decode step without CUDA graphs"
    advice = "remove it, or say in a comment why it is needed"

    summary = "a serving engine runs without CUDA graphs"
    what = """
        `enforce_eager=True` (vLLM), `disable_cuda_graph=True` (SGLang), `eager_mode=True` (LMDeploy), `--cuda-graphs 0`
        (TGI) and their command-line and file spellings, without a comment that gives a reason.
        """
    why = """
        Every decode step then launches its kernels one by one from Python. At small batch the launches take longer than
        the kernels, and the device idles in between.
        """
    fine = """
        - A comment beside the setting that says why: a backend bug, memory, debugging. Shown at low confidence.
        - Tests, benchmarks, debug branches.
        - Devices without CUDA graphs (CPU, XPU, Gaudi, …): files and images whose names say so.
        """
    safety = """
        Unsafe in Python calls: the setting is dropped; graphs take some memory at start-up. Settings in other files get
        a recommendation: remove them, and compare memory at start-up and the first requests.
        """
    references = ("https://docs.vllm.ai/en/latest/configuration/conserving_memory.html",)
    bad = """
        from vllm import LLM

        llm = LLM(model="lm", enforce_eager=True)
        """
    good = """
        from vllm import LLM

        llm = LLM(model="lm")
        """

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        view = definition.view
        keyword = view.parent(candidate.node)
        call = view.parent(keyword) if isinstance(keyword, ast.keyword) else None
        if not isinstance(call, ast.Call) or not isinstance(keyword, ast.keyword) or keyword.arg is None:
            return None
        edit = drop_keyword(call, keyword.arg, definition)
        if edit is None:
            return None
        return Fix(
            title=f"drop `{keyword.arg}={definition.text(keyword.value)}`",
            safety=Safety.UNSAFE,
            edits=(edit,),
            effects=(Effect.MEMORY, Effect.NUMERICS),
            requires=("there is memory for the captured graphs",),
        )
