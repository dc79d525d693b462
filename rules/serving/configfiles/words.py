"""Shell text as words with their lines: enough of the grammar to read command lines, never to run them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_ENDS = frozenset(";&|()")


@dataclass(frozen=True, slots=True)
class Word:
    """One word. ``opaque``: it holds a substitution or a template, so that its value is not known."""

    text: str
    line: int
    column: int  # 1-based
    opaque: bool = False


@dataclass(slots=True)
class Command:
    """One simple command, and the comments on its lines and right above it."""

    words: list[Word] = field(default_factory=list)
    comments: dict[int, str] = field(default_factory=dict)

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line."""
        return self.words[0].line, self.words[-1].line


def commands(text: str, first_line: int = 1) -> Iterator[Command]:
    """The simple commands of a script. Bodies of here-documents are left out; broken quoting ends the reading."""
    comments = _comments(text, first_line)
    current = Command(comments=comments)
    for token in _tokens(text, first_line):
        if token is None:
            if current.words:
                yield current
            current = Command(comments=comments)
        else:
            current.words.append(token)
    if current.words:
        yield current


def _comments(text: str, first_line: int) -> dict[int, str]:
    found = {}
    for number, line in enumerate(text.split("\n"), first_line):
        match = re.search(r"(?:^|\s)#\s?(.*)$", line)
        if match:
            found[number] = match.group(1).strip()
    return found


def _tokens(text: str, first_line: int) -> Iterator[Word | None]:
    """Words, and None where a command ends."""
    line, start, index = first_line, 0, 0
    waiting: list[str] = []  # ends of here-documents that begin on this line
    size = len(text)
    while index < size:
        char = text[index]
        if char == "\n":
            yield None
            index += 1
            line, start = line + 1, index
            for end in waiting:
                index, line = _skip_heredoc(text, index, line, end)
                start = index
            waiting = []
        elif char in " \t\r":
            index += 1
        elif char == "\\" and text[index + 1 : index + 2] in ("\n", "\r"):
            index = text.find("\n", index) + 1
            line, start = line + 1, index
        elif char == "#":
            stop = text.find("\n", index)
            index = size if stop < 0 else stop
        elif char == "<" and (match := _HEREDOC.match(text, index)):
            waiting.append(match.group(2))
            index = match.end()
        elif char in _ENDS:
            yield None
            index += 1
        else:
            word, index, lines = _word(text, index, line, index - start + 1)
            if word is None:
                return
            yield word
            if lines:
                line += lines
                start = text.rfind("\n", 0, index) + 1


def _skip_heredoc(text: str, index: int, line: int, end: str) -> tuple[int, int]:
    while index < len(text):
        stop = text.find("\n", index)
        stop = len(text) if stop < 0 else stop
        found = text[index:stop].strip() == end
        index, line = stop + 1, line + 1
        if found:
            break
    return index, line


def _word(text: str, index: int, line: int, column: int) -> tuple[Word | None, int, int]:
    """One word from ``index`` on: the word, where it ends, and how many lines it spans beyond its first."""
    parts: list[str] = []
    opaque = False
    lines = 0
    size = len(text)
    while index < size:
        char = text[index]
        if char in " \t\r\n" or char in _ENDS:
            break
        if char == "'":
            end = text.find("'", index + 1)
            if end < 0:
                return None, size, 0
            piece = text[index + 1 : end]
            parts.append(piece)
            lines += piece.count("\n")
            index = end + 1
        elif char == '"':
            end = index + 1
            while end < size and text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            if end >= size:
                return None, size, 0
            piece = text[index + 1 : end]
            opaque = opaque or "$" in piece or "`" in piece
            parts.append(piece.replace("\\\n", "").replace('\\"', '"'))
            lines += piece.count("\n")
            index = end + 1
        elif char == "\\":
            if text[index + 1 : index + 2] == "\n":
                break
            parts.append(text[index + 1 : index + 2])
            index += 2
        elif char == "$" and text[index + 1 : index + 2] in ("(", "{"):
            close = {"(": ")", "{": "}"}[text[index + 1]]
            end = _closing(text, index + 1, text[index + 1], close)
            if end < 0:
                return None, size, 0
            parts.append(text[index : end + 1])
            lines += text.count("\n", index, end)
            opaque, index = True, end + 1
        elif char == "`":
            end = text.find("`", index + 1)
            if end < 0:
                return None, size, 0
            parts.append(text[index : end + 1])
            lines += text.count("\n", index, end)
            opaque, index = True, end + 1
        else:
            opaque = opaque or char == "$"
            parts.append(char)
            index += 1
    value = "".join(parts)
    return Word(value, line, column, opaque or "{{" in value), index, lines


def _closing(text: str, index: int, opening: str, closing: str) -> int:
    depth = 0
    for position in range(index, len(text)):
        if text[position] == opening:
            depth += 1
        elif text[position] == closing:
            depth -= 1
            if depth == 0:
                return position
    return -1
