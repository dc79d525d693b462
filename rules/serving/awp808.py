"""AWP808 dev-server."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import argument, callee, short

_MODEL = re.compile(r"\btorch\b|\btransformers\b|\bdiffusers\b|\bvllm\b")
_FLASK = re.compile(r"\bFlask\(")


class DevServer(Rule):
    """A development server, or several workers that each hold a copy of the model."""

    id = "AWP808"
    name = "dev-server"
    root_cause = RootCause.SYSTEM
    confidence = Confidence.MEDIUM
    cost_us = 5000.0
    event = Event.NONE
    anywhere = True
    words = (b"uvicorn", b"Flask", b"hypercorn")
    nodes = (ast.Call,)
    calls = frozenset({"run"})

    summary = "a model is served by a development server, or copied into several workers"
    what = """
        `uvicorn.run(..., reload=True)`, Flask's `app.run(debug=True)` and `--reload` on a command line, and
        `uvicorn.run(..., workers=N)` in a file that runs a model.
        """
    why = """
        A reloader watches files, keeps a second process and restarts the server, model and all, when one changes. Each
        worker process loads a copy of the model, compiles and captures for itself, and shares the device by time
        slices: the batches of one process are split among several.
        """
    fine = """
        - Development files and branches (`dev` in the name, below a debug flag); reload taken from a setting.
        - Workers that call a model server elsewhere.
        """
    safety = """
        No automatic rewrite: one worker process a device, without reload; more processes in front of it for
        the HTTP work.
        """
    references = ("https://www.uvicorn.org/deployment/",)
    bad = """
        import torch
        import uvicorn
        from fastapi import FastAPI

        app = FastAPI()
        model = torch.nn.Linear(8, 8).to("cuda").eval()

        if __name__ == "__main__":
            uvicorn.run("server:app", host="0.0.0.0", reload=True)
        """
    good = """
        import torch
        import uvicorn
        from fastapi import FastAPI

        app = FastAPI()
        model = torch.nn.Linear(8, 8).to("cuda").eval()

        if __name__ == "__main__":
            uvicorn.run("server:app", host="0.0.0.0")
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) != "run" or not _MODEL.search(file.text):
            return
        if view.regions(node) & (Region.TEST | Region.TRAINING | Region.TIMED | Region.DEBUG):
            return
        what = _problem(node, view, file)
        if what is None:
            return
        yield Candidate(
            node=node,
            message=f"`{short(node.func, 40)}(...)` {what}",
            action="serve with one process a device, without reload and debug",
            confidence=Confidence.LOW if "dev" in file.path.rpartition("/")[2].lower() else self.confidence,
            frequency=view.frequency(node),
        )


def _problem(call: ast.Call, view: FunctionView, file: FileView) -> str | None:
    dotted = view.qualified(call.func) or ""
    if dotted == "uvicorn.run":
        if _true(argument(call, None, "reload")):
            return "reloads: a watcher and a second process beside the model"
        workers = argument(call, None, "workers")
        if isinstance(workers, ast.Constant) and isinstance(workers.value, int) and workers.value > 1:
            return f"starts {workers.value} workers, each with a copy of the model"
        return None
    if _FLASK.search(file.text) and _true(argument(call, None, "debug")):
        return "runs Flask's debugging server, which loads the model twice"
    return None


def _true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
