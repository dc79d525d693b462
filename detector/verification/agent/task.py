"""The task as the agent reads it: ``task.json`` in the session's folder, written by the parent.

``{"route": "none"|"instance"|"process", "arm": "A"|"B", "order": [arm, …], "seed": …, "patches": [{seconds, compare,
allowed, files}, …]}``; files
are ``[{path, created, digest, before, after, functions, imports, marks}, …]``. ``before`` and ``after`` name files in
the session's folder that hold the module's two texts, byte for byte. ``functions`` are ``{names, ordinal}``: the
outermost functions that the patch edits, by their path in the module. ``marks`` are the unit marks at their places in
the patched text. By the route *none* the patches are proven one after the other; the others take one: *process* runs
``arm``, *instance* the arms side by side, begun in ``order``.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from awp_lint.detector.profiling.agent.plan import AgentMark

CALLS = 1 << 16  # the mark that ticks at the calls of an edited function


class Edited(NamedTuple):
    """A function that the patch edits: its path in the module, and which of several of that name."""

    names: tuple[str, ...]
    ordinal: int

    def label(self) -> str:
        """The dotted name."""
        return ".".join(self.names)


class Bound(NamedTuple):
    """A name that an import of the patch binds: ``from module import name as bound``."""

    module: str
    name: str | None
    bound: str


class File(NamedTuple):
    """One patched module."""

    path: str
    digest: str
    before: bytes
    after: bytes
    functions: tuple[Edited, ...]
    imports: tuple[Bound, ...]
    marks: tuple[AgentMark, ...]
    created: bool  # a module that the patch adds


class Patch(NamedTuple):
    """One patch: for how long it is measured, whether its calls are compared, and what it may change."""

    seconds: float
    compare: bool
    allowed: dict[str, bool]
    files: dict[str, File]  # by real path


class Task:
    """What this process is to prove."""

    def __init__(self, session: str) -> None:
        import json

        with open(os.path.join(session, "task.json"), encoding="utf-8") as file:
            raw: dict[str, Any] = json.load(file)
        self.route = str(raw["route"])
        self.arm = str(raw["arm"])
        self.order = [str(arm) for arm in raw["order"]]
        self.seed = int(raw["seed"])
        self.patches = [
            Patch(
                float(patch["seconds"]),
                bool(patch["compare"]),
                dict(patch["allowed"]),
                {os.path.realpath(entry["path"]): _file(session, entry) for entry in patch["files"]},
            )
            for patch in raw["patches"]
        ]
        self.files = {path: file for patch in self.patches for path, file in patch.files.items()}

    @property
    def patched(self) -> bool:
        """Whether this whole process runs the patched text."""
        return self.route == "process" and self.arm == "B"


def _file(session: str, raw: dict[str, Any]) -> File:
    texts = []
    for name in ("before", "after"):
        with open(os.path.join(session, raw[name]), "rb") as file:
            texts.append(file.read())
    return File(
        raw["path"],
        raw["digest"],
        texts[0],
        texts[1],
        tuple(Edited(tuple(entry["names"]), entry["ordinal"]) for entry in raw["functions"]),
        tuple(Bound(entry["module"], entry["name"], entry["bound"]) for entry in raw["imports"]),
        tuple(AgentMark(mark["index"], *(mark.get(n) for n in AgentMark._fields[1:])) for mark in raw["marks"]),
        bool(raw["created"]),
    )
