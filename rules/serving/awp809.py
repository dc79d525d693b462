"""AWP809 parallel-misfit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.numbers import real
from awp_lint.rules.serving.engines import PYTHON_CLASSES
from awp_lint.rules.serving.parallel import degree, idle_devices

_VISIBLE = re.compile(r"""environ\[["']CUDA_VISIBLE_DEVICES["']\]\s*=\s*["']([\d,\s]+)["']""")


class ParallelMisfit(Rule):
    """An engine spread over fewer devices than it is given."""

    id = "AWP809"
    name = "parallel-misfit"
    root_cause = RootCause.SYSTEM
    confidence = Confidence.MEDIUM
    cost_us = 1000.0
    event = Event.NONE
    anywhere = True
    words = (b"CUDA_VISIBLE_DEVICES",)
    nodes = (ast.Call,)
    calls = frozenset(name.rpartition(".")[2] for name in PYTHON_CLASSES)

    summary = "an engine uses fewer devices than it is given"
    what = """
        An engine whose tensor, pipeline and data parallel degrees multiply to less than the devices that the same file
        gives it: `CUDA_VISIBLE_DEVICES`, `nvidia.com/gpu` of its container, the device count of its Compose service.
        """
    why = """
        The other devices are reserved and idle.
        """
    fine = """
        - Several engines in one container that share its devices; degrees or counts filled in from elsewhere.
        - Whether a degree suits the model and the links, no file tells: run with evidence (`--profile`) for that.
        """
    safety = """
        No automatic rewrite: raise the data parallel degree (replicas) before the tensor parallel one.
        """
    references = ("https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html",)
    bad = """
        import os
        from vllm import LLM

        os.environ["CUDA_VISIBLE_DEVICES"] = "0,1,2,3"
        llm = LLM(model="lm", tensor_parallel_size=2)
        """
    good = """
        import os
        from vllm import LLM

        os.environ["CUDA_VISIBLE_DEVICES"] = "0,1,2,3"
        llm = LLM(model="lm", tensor_parallel_size=4)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        engine = PYTHON_CLASSES.get(view.qualified(node.func) or "")
        if engine is None or view.regions(node) & (Region.TEST | Region.TRAINING | Region.TIMED):
            return
        given = _VISIBLE.findall(file.text)
        calls = [
            call
            for other in file.functions()
            for call in other.nodes(ast.Call)
            if isinstance(call, ast.Call) and PYTHON_CLASSES.get(other.qualified(call.func) or "") is not None
        ]
        if len(given) != 1 or len(calls) != 1 or any(k.arg is None for k in node.keywords):
            return
        settings = {
            k.arg: real(k.value.value) if isinstance(k.value, ast.Constant) and type(k.value.value) is int else None
            for k in node.keywords
            if k.arg is not None
        }
        used = degree(settings)
        devices = len([part for part in given[0].split(",") if part.strip()])
        idle = idle_devices(used, devices)
        if idle is None:
            return
        yield Candidate(
            node=node,
            message=f"the engine uses {used} of {devices} visible devices",
            action=f"use the other {idle} (`data_parallel_size`), or do not reserve them",
            confidence=self.confidence,
            frequency=view.frequency(node),
        )
