"""AWP810 thread-oversubscription."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import argument, short
from awp_lint.rules.numbers import whole
from awp_lint.rules.serving.parallel import oversubscribed

_THREADS = re.compile(
    r"""set_num_threads\(\s*(\d+)\s*\)|environ\[["'](?:OMP|MKL)_NUM_THREADS["']\]\s*=\s*["'](\d+)["']"""
)
_MOST_CORES = 128  # of a large host: beyond twice that, no machine fits


class ThreadOversubscription(Rule):
    """More threads than any core could run."""

    id = "AWP810"
    name = "thread-oversubscription"
    root_cause = RootCause.SYSTEM
    confidence = Confidence.MEDIUM
    cost_us = 2000.0
    event = Event.NONE
    anywhere = True
    words = (b"set_num_threads", b"_NUM_THREADS")
    nodes = (ast.Call,)
    calls = frozenset({"run"})

    summary = "worker processes start more threads together than there are cores"
    what = """
        Threads a process (`OMP_NUM_THREADS`, `MKL_NUM_THREADS`, `torch.set_num_threads`) times worker processes, where
        the product exceeds twice the cores: those that the same Compose service or Kubernetes container is limited to,
        or in Python 128.
        """
    why = """
        Threads that outnumber the cores take turns: each barrier of a parallel loop waits for a thread that is not
        running, and the thread that feeds the accelerator waits for its turn as well.
        """
    fine = """
        - Numbers that are not written down, limits that are not set: nothing is said.
        - Threads that mostly wait (connection pools).
        """
    safety = """
        No automatic rewrite: threads = cores / workers.
        """
    references = ("https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html",)
    bad = """
        import os
        import torch
        import uvicorn

        os.environ["OMP_NUM_THREADS"] = "64"

        if __name__ == "__main__":
            uvicorn.run("server:app", workers=8)
        """
    good = """
        import os
        import torch
        import uvicorn

        os.environ["OMP_NUM_THREADS"] = "4"

        if __name__ == "__main__":
            uvicorn.run("server:app", workers=8)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if view.qualified(node.func) != "uvicorn.run" or view.regions(node) & (Region.TEST | Region.TIMED):
            return
        workers = argument(node, None, "workers")
        found = [number for a, b in _THREADS.findall(file.text) if (number := whole(a or b)) is not None]
        if not found or not isinstance(workers, ast.Constant) or type(workers.value) is not int:
            return
        threads = max(found)
        if not oversubscribed(threads, workers.value, _MOST_CORES):
            return
        yield Candidate(
            node=node,
            message=f"`{short(node.func)}(...)` starts {workers.value} workers of {threads} threads each",
            action="give each worker its share of the cores",
            confidence=self.confidence,
            frequency=view.frequency(node),
        )
