"""A repository with a pull request on this disk: real git, real code, a clone as a CI job has it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import requests

IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")

#: Always the same, so that the same content is the same commit in every test.
DATE = "2026-01-01T00:00:00Z"

MODEL = """\
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(ids.shape[1], device=ids.device)
        return self.out(positions.float() + ids.float())
"""

DECODE = """\
import torch

from srv.model import Head


@torch.inference_mode()
def generate(model: Head, ids: torch.Tensor, steps: int) -> torch.Tensor:
    logits = model(ids)
    for _ in range(steps):
        logits = model(logits)
    return logits
"""

APP = """\
from fastapi import FastAPI
from srv.decode import generate
from srv.model import Head

app = FastAPI()
model = Head().to("cuda")


@app.post("/")
def answer(request):
    return generate(model, request, 8)
"""

BASE = {
    "pyproject.toml": '[tool.awp-lint]\njobs = 1\nselect = ["AWP101", "AWP102", "AWP105", "AWP602"]\n',
    "app.py": APP,
    "srv/__init__.py": "",
    "srv/decode.py": DECODE,
    "srv/model.py": MODEL,
    "README.md": "words\n",
}

#: Three new findings: AWP602 (safe, one line), AWP105 (unsafe, one line), AWP102 (unsafe, two places).
FAULTY = {
    "srv/model.py": MODEL.replace(
        "torch.arange(ids.shape[1], device=ids.device)", "torch.arange(ids.shape[1]).to(ids.device)"
    ),
    "srv/decode.py": DECODE.replace(
        "        logits = model(logits)\n",
        "        logits = model(logits)\n"
        "        mask = logits < 0\n"
        "        logits[mask] = logits.mean()\n"
        "        if (logits[:, -1] == 0).any():\n"
        "            break\n",
    ),
}


def git(folder: Path, *words: str) -> str:
    """Output of a git command."""
    environment = {**os.environ, "GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE}
    run = subprocess.run(
        ["git", *IDENTITY, *words], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


class World:
    """The host's repository (``origin``), where the author pushes to, and the ``clone`` that the bot works in."""

    def __init__(self, folder: Path, base: dict[str, str] | None = None) -> None:
        self.origin = folder / "origin"
        self.clone = folder / "clone"
        self.origin.mkdir()
        git(self.origin, "init", "-q")
        git(self.origin, "config", "uploadpack.allowAnySHA1InWant", "true")
        self.base = self.commit(base or BASE, "base")
        git(folder, "clone", "-q", str(self.origin), str(self.clone))
        git(self.origin, "checkout", "-q", "-b", "change")

    def commit(self, files: Mapping[str, str | bytes | None], message: str = "change") -> str:
        """Write, delete (None) and commit files; the new commit, offered as the pull request's head."""
        for name, content in files.items():
            path = self.origin / name
            if content is None:
                git(self.origin, "rm", "-q", name)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        git(self.origin, "add", "-A")
        git(self.origin, "commit", "-q", "--allow-empty", "-m", message)
        head = git(self.origin, "rev-parse", "HEAD")
        git(self.origin, "update-ref", "refs/pull/7/head", head)
        git(self.origin, "update-ref", "refs/merge-requests/7/head", head)
        return head

    def shown(self, base: str, head: str) -> dict[str, set[int]]:
        """The lines of the new side that the host's diff view shows, by path."""
        import re

        lines: dict[str, set[int]] = {}
        path, number = "", 0
        for row in git(self.origin, "diff", f"{base}...{head}").split("\n"):
            if row.startswith("+++ "):
                path = row[6:].rstrip("\t")
            elif found := re.match(r"@@ -\S+ \+(\d+)", row):
                number = int(found.group(1))
            elif path and row[:1] in ("+", " "):
                lines.setdefault(path, set()).add(number)
                number += 1
        return lines


def too_late(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """A list of methods and ends of paths: each entry makes the answer to one such request come too late.

    The host gets the request and does the work.
    """
    late: list[tuple[str, str]] = []
    plain = requests.Session.send

    def send(self: requests.Session, request: requests.PreparedRequest, **more: Any) -> requests.Response:
        answer = plain(self, request, **more)
        for entry in late:
            if request.method == entry[0] and (request.url or "").partition("?")[0].endswith(entry[1]):
                late.remove(entry)
                raise requests.ReadTimeout("timed out")
        return answer

    monkeypatch.setattr(requests.Session, "send", send)
    return late
