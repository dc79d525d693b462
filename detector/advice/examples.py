"""What became of earlier patches, kept on this machine for this project, and shown to the model as examples.

Only masked code is kept. Examples of one project never go out with the questions of another.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from awp_lint.detector.project.cache import cache_folder
from awp_lint.detector.wholefile import write_whole

_MOST = 200  # of a project
_SHOWN = 2  # with a question
_LONGEST = 4000  # characters of a function


@dataclass(frozen=True, slots=True)
class Example:
    """A function before and after, and why it was refused (empty: it was taken, ``verdict`` says what a run found)."""

    rule: str
    before: str
    after: str
    wrong: tuple[str, ...]
    verdict: str = ""

    @classmethod
    def of(cls, rule: str, before: str, after: str, wrong: Sequence[str]) -> Example:
        """Of one attempt."""
        return cls(rule, before, after, tuple(wrong[:3]))

    def as_dict(self) -> dict[str, object]:
        """For the question."""
        outcome = f"refused: {'; '.join(self.wrong)}" if self.wrong else f"accepted {self.verdict}".strip()
        return {"function": self.before, "replacement": self.after, "outcome": outcome}

    @property
    def good(self) -> bool:
        """Whether it shows how to do it."""
        return not self.wrong and self.verdict in ("", "verified", "no_effect", "not_resolved")


class Examples:
    """The examples of the project in ``folder``; switched off they hold nothing and keep nothing."""

    def __init__(self, folder: str, enabled: bool = True) -> None:
        self._enabled = enabled
        name = hashlib.sha256(os.path.realpath(folder).encode("utf-8", "surrogatepass")).hexdigest()[:24]
        self._file = cache_folder() / "llm-examples" / f"{name}.json" if enabled else Path(os.devnull)
        self._held = self._read() if enabled else []

    def _read(self) -> list[Example]:
        try:
            rows = json.loads(self._file.read_text("utf-8"))
            return [Example(**{**row, "wrong": tuple(row["wrong"])}) for row in rows][-_MOST:]
        except (OSError, ValueError, TypeError, KeyError):
            return []  # none yet, or not ours: learned anew

    def of(self, rule: str, code: str) -> list[Example]:
        """A few examples of a rule, other than of this code: the last good one, and the last that was refused."""
        own = [e for e in reversed(self._held) if e.rule == rule and e.before != code]
        own = [e for e in own if len(e.before) + len(e.after) < _LONGEST]
        good, bad = [e for e in own if e.good], [e for e in own if not e.good]
        return [*good[:1], *bad[:1]][:_SHOWN]

    def keep(self, more: Iterable[Example]) -> None:
        """Add examples; one of the same function and result replaces the earlier one. Never fails."""
        if not self._enabled:
            return
        for example in more:
            same = (example.rule, example.before, example.after)
            self._held = [e for e in self._held if (e.rule, e.before, e.after) != same] + [example]
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._file, json.dumps([dataclasses.asdict(e) for e in self._held[-_MOST:]]).encode())
        except OSError:
            return
