"""Comments that silence findings.

============================================  =========================================================
``# awp: ignore[AWP101] reason``              the statement it stands in, or the one below a comment line
``# awp: off[AWP101] reason`` … ``# awp: on``  every line between
``# awp: ignore-file[AWP101] reason``         the file
``# noqa: AWP101``                            the statement it stands in
============================================  =========================================================

Ids may be prefixes (``AWP1``) and lists. A comment that names no rule silences nothing and is reported, as is one that
silenced nothing although its rules ran.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

_HINT = re.compile(r"awp:\s*(?:ignore|off)|noqa:[^\n]*AWP", re.IGNORECASE)
_OWN = re.compile(r"awp:\s*(ignore-file|ignore|off|on)\b\s*(?:\[([^\]]*)\])?[\s:,-]*(.*)", re.IGNORECASE)
_NOQA = re.compile(r"noqa:\s*([A-Z]+\d+(?:[\s,]+[A-Z]+\d+)*)", re.IGNORECASE)
_ID = re.compile(r"AWP\d{0,3}$")
_COMMENT = ("#", "//")


@dataclass(slots=True)
class Suppression:
    """One comment. Lines are 1-based and inclusive; ``used`` is set by :meth:`Suppressions.reason`."""

    line: int
    first: int
    last: int
    ids: tuple[str, ...]
    reason: str
    own: bool = True  # False for noqa, whose unused entries are another tool's business
    used: set[str] = field(default_factory=set)


class Suppressions:
    """All suppressing comments of one file; ``comments`` are those of a text that is no Python, by their lines."""

    def __init__(self, text: str, comments: Mapping[int, str] | None = None) -> None:
        self._entries: list[Suppression] = []
        self.problems: list[tuple[int, str]] = []
        if "awp" in text.lower() and _HINT.search(text):
            self._read(text, _comments(text) if comments is None else _given(text, comments))

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._entries)

    def reason(self, ids: Iterable[str], first: int, last: int) -> str | None:
        """Why findings of any of these rules are silenced on these lines: the reason, "" for none given, else None."""
        for entry in self._entries:
            if entry.first > last or entry.last < first:
                continue
            for name in ids:
                hit = next((p for p in entry.ids if name.startswith(p)), None)
                if hit is not None:
                    entry.used.add(hit)
                    return entry.reason
        return None

    def unused(self, ran: Iterable[str], known: Iterable[str] = ()) -> list[tuple[int, str]]:
        """Line and id of what silenced nothing, among the rules that ran.

        A prefix counts only where every rule of ``known`` that it stands for has run.
        """
        names = frozenset(ran)
        absent = frozenset(known) - names
        return [
            (entry.line, prefix)
            for entry in self._entries
            if entry.own
            for prefix in entry.ids
            if prefix not in entry.used
            and any(name.startswith(prefix) for name in names)
            and not any(name.startswith(prefix) for name in absent)
        ]

    def _read(self, text: str, comments: Iterable[tuple[int, str, bool]]) -> None:
        opened: list[Suppression] = []
        last_line = text.count("\n") + 1
        for line, comment, alone in comments:
            found = _OWN.search(comment)
            if found is None:
                plain = _NOQA.search(comment)
                if plain:
                    ids = _ids(re.split(r"[\s,]+", plain.group(1)))[0]
                    if ids:
                        self._entries.append(Suppression(line, line, line, ids, "", own=False))
                continue
            word, listed, reason = found.group(1).lower(), found.group(2), found.group(3).strip()
            if word == "on":
                wanted, _ = _ids((listed or "").split(","))
                for entry in [e for e in opened if not wanted or set(wanted) & set(e.ids)]:
                    entry.last = line
                    opened.remove(entry)
                continue
            ids, wrong = _ids((listed or "").split(","))
            for name in wrong:
                self.problems.append((line, f"not a rule id in a suppression: {name}"))
            if not ids:
                if not wrong:
                    self.problems.append((line, f"suppression without a rule id: write awp: {word}[AWP101] and why"))
                continue
            if word == "ignore":
                # A comment line of its own speaks of the next line of code.
                self._entries.append(Suppression(line, line, _next_code(text, line) if alone else line, ids, reason))
            else:
                entry = Suppression(line, 1 if word == "ignore-file" else line, last_line, ids, reason)
                self._entries.append(entry)
                if word == "off":
                    opened.append(entry)


def _ids(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    cleaned = [name.strip().upper() for name in names if name.strip()]
    own = tuple(n for n in cleaned if _ID.match(n))
    return own, tuple(n for n in cleaned if not _ID.match(n))


def _comments(text: str) -> Iterable[tuple[int, str, bool]]:
    """Line, text of each comment and whether the line holds nothing else."""
    reader = io.StringIO(text).readline
    try:
        for token in tokenize.generate_tokens(reader):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                yield line, token.string, not token.line[:column].strip()
    except (tokenize.TokenError, SyntaxError):
        return  # the parser has already said what is wrong with the file


def _given(text: str, comments: Mapping[int, str]) -> Iterable[tuple[int, str, bool]]:
    """The comments of a text that is no Python, as :func:`_comments` gives them."""
    lines = text.split("\n")
    for line, comment in sorted(comments.items()):
        yield line, comment, lines[line - 1].lstrip().startswith(_COMMENT)


def _next_code(text: str, line: int) -> int:
    lines = text.split("\n")
    for number in range(line, len(lines)):
        stripped = lines[number].strip()
        if stripped and not stripped.startswith(_COMMENT):
            return number + 1
    return line
