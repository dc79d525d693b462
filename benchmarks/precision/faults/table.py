"""What a table of faults is made of: snippets of one rule, and where they go."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Faults:
    """Snippets of one rule, or of one kind of its faults, and where they go (``kind``)."""

    rule: str
    kind: str
    bad: tuple[str, ...]
    good: tuple[str, ...]
    same: tuple[str, ...] = ()  # rules whose findings on the same lines name the same fault

    def snippets(self, fault: bool) -> tuple[str, ...]:
        """The faults, or the look-alikes."""
        return self.bad if fault else self.good


def faults(rule: str, kind: str, bad: str, good: str, same: tuple[str, ...] = ()) -> Faults:
    """From texts whose snippets are parted by lines of dashes."""
    return Faults(rule, kind, _snippets(bad), _snippets(good), same)


def _snippets(text: str) -> tuple[str, ...]:
    return tuple(dedent(part).strip("\n") for part in dedent(text).split("---\n") if part.strip())
