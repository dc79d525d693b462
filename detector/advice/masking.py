"""A file's text as a model may see it: the same lines, without comments and without what strings say.

Strings are left out by default, not by suspicion: only words that inference code uses as switches and plain keys stay.
So secrets stay here, and so does whatever a comment or a string tells the reader of the code to do. Each string that is
left out is numbered, so that code which a model returns can get it back.
"""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass
from functools import cached_property

from awp_lint.detector.project.source import Source

_PLACE = re.compile(r"__S\d+__")
_LITERAL = re.compile(r"(?P<prefix>[A-Za-z]*)(?P<quote>'''|\"\"\"|'|\")")
_KEY = re.compile(r"[a-z]{1,12}(_[a-z]{1,12}){0,4}\Z")
_WORD = re.compile(
    r"(cuda|cpu|mps|xpu|hip|meta|auto|balanced|sequential)(:\d{1,2})?\Z"
    r"|(b?float|u?int|bf|fp|nf|complex)\d{1,3}(_e\dm\d(fn)?)?\Z"
    r"|(pt|np|tf|sdpa|eager|none|left|right|longest|max_length|dynamic|static|offloaded|bilinear|nearest|bicubic)\Z"
    r"|(default|reduce-overhead|max-autotune|max-autotune-no-cudagraphs|inductor|nccl|gloo|spawn|fork|high|highest)\Z"
    r"|flash_attention_\d|__main__|[rwab]{1,2}\Z"
)
_SECRET_NAME = re.compile(
    r"passw|pwd|secret|token|key|credential|auth|bearer|cookie|session|dsn|private", re.IGNORECASE
)


class Unreadable(Exception):
    """A text that cannot be masked, and so is not sent."""


@dataclass(frozen=True)
class Masked:
    """``lines`` are the text's lines (line 1 is at index 0), ``originals`` what stood in each numbered place.

    A string of several lines keeps its lines, empty but for the place at its beginning; it is not in ``originals``.
    """

    lines: tuple[str, ...]
    originals: dict[str, str]

    def restored(self, text: str) -> str:
        """Code in which the places hold their strings again. Raises :class:`KeyError` for a place that is none."""
        return _PLACE.sub(lambda found: self.originals[found.group()], text)


class Masker:
    """Masks one file."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @cached_property
    def masked(self) -> Masked:
        """The masked text. Raises :class:`Unreadable`."""
        source = self._source
        lines = [source.line_text(number) for number in range(1, len(source.line_starts) + 1)]
        if any(_PLACE.search(line) for line in lines):
            raise Unreadable("it holds a name such as __S1__")
        originals: dict[str, str] = {}
        try:
            spans = list(_spans(lines))
        except (tokenize.TokenError, SyntaxError, ValueError, IndexError) as error:
            raise Unreadable(str(error)) from None
        count = sum(span.literal for span in spans)
        for span in reversed(spans):
            (row, column), (end_row, end_column) = span.start, span.end
            word = ""
            if span.literal:
                word = f"__S{count}__"
                count -= 1
            if row == end_row:
                if word:
                    originals[word] = lines[row][column:end_column]
                lines[row] = (lines[row][:column] + word + lines[row][end_column:]).rstrip()
                continue
            last = lines[end_row]
            margin = last[: min(len(last) - len(last.lstrip()), end_column)]
            lines[end_row] = (margin + last[end_column:]).rstrip()
            lines[row + 1 : end_row] = [""] * (end_row - row - 1)
            lines[row] = lines[row][:column] + word
        return Masked(tuple(lines), originals)


@dataclass(frozen=True, slots=True)
class _Span:
    """What is left out: (row, column) from 0, end exclusive; a comment where it is not ``literal``."""

    start: tuple[int, int]
    end: tuple[int, int]
    literal: bool


def _spans(lines: list[str]) -> list[_Span]:
    found: list[_Span] = []
    before = ""  # the name that a string belongs to, as far as can be told
    index = [False]
    opened: list[tuple[int, int]] = []
    starts = getattr(tokenize, "FSTRING_START", -1), getattr(tokenize, "TSTRING_START", -1)
    ends = getattr(tokenize, "FSTRING_END", -1), getattr(tokenize, "TSTRING_END", -1)
    text = "\n".join(lines) + "\n"
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        start, end = (token.start[0] - 1, token.start[1]), (token.end[0] - 1, token.end[1])
        if token.type in starts:
            opened.append(start)
        elif token.type in ends:
            begin = opened.pop()
            if not opened:
                found += _formatted(lines, begin, end)
        elif opened:
            continue  # what stands within is looked at as a whole
        elif token.type == tokenize.COMMENT:
            found.append(_Span(start, end, False))
        elif token.type == tokenize.STRING:
            found += _plain(lines, start, end, before, index[-1])
        elif token.type == tokenize.NAME:
            before = token.string
        elif token.type == tokenize.OP and token.string in "([{":
            index.append(token.string == "[")
        elif token.type == tokenize.OP and token.string in ")]}":
            if len(index) > 1:
                index.pop()
        elif token.type == tokenize.NEWLINE:
            before = ""
    return found


def _inside(
    lines: list[str], start: tuple[int, int], end: tuple[int, int]
) -> tuple[str, tuple[int, int], tuple[int, int]]:
    """The prefix of a literal, and where its content begins and ends."""
    match = _LITERAL.match(lines[start[0]], start[1])
    if match is None:
        raise ValueError("a string without quotes")
    width = len(match["quote"])
    return match["prefix"].lower(), (start[0], match.end()), (end[0], end[1] - width)


def _plain(lines: list[str], start: tuple[int, int], end: tuple[int, int], before: str, subscript: bool) -> list[_Span]:
    prefix, begin, stop = _inside(lines, start, end)
    if "f" in prefix or "t" in prefix:  # Python before 3.12 gives them whole
        return _formatted(lines, start, end)
    if begin == stop:
        return []
    if begin[0] == stop[0] and not _SECRET_NAME.search(before):
        content = lines[begin[0]][begin[1] : stop[1]]
        if _WORD.match(content) or (subscript and _KEY.match(content)):
            return []
    return [_Span(begin, stop, True)]


def _formatted(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> list[_Span]:
    """The literal parts of a formatted string; all of it where its braces cannot be followed."""
    _, begin, stop = _inside(lines, start, end)
    whole = [_Span(begin, stop, True)] if begin != stop else []
    if begin[0] != stop[0]:
        return whole
    text = lines[begin[0]][begin[1] : stop[1]]
    found: list[_Span] = []
    depth = at = first = 0
    while at < len(text):
        char = text[at]
        if depth == 0 and text[at : at + 2] in ("{{", "}}"):
            at += 1
        elif char == "{":
            if depth == 0 and at > first:
                found.append(_Span((begin[0], begin[1] + first), (begin[0], begin[1] + at), True))
            depth += 1
        elif char == "}":
            depth -= 1
            first = at + 1
            if depth < 0:
                return whole
        elif depth and char in "'\"\\#!:":
            return whole  # strings, conversions and formats within: not worth telling apart
        at += 1
    if depth:
        return whole
    if first < len(text):
        found.append(_Span((begin[0], begin[1] + first), stop, True))
    return found


_QUOTED = re.compile(r"'''.*?'''|\"\"\".*?\"\"\"|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_FOLDERS = re.compile(r"(?<![\w.])/(?:[\w.+@-]+/)+|[A-Za-z]:\\\S*\\")  # of this machine, where paths are absolute
_LONG = re.compile(r"[A-Za-z0-9+/_=-]{24,}")


def quiet(text: str) -> str:
    """Words of ours that may quote code (a finding's message, a reason), without strings and odd long words."""

    def kept(found: re.Match[str]) -> str:
        content = found.group().strip("'\"")
        return (
            found.group() if _WORD.match(content) or _KEY.match(content) else f"{found.group()[0]}…{found.group()[0]}"
        )

    text = _FOLDERS.sub("…/", _QUOTED.sub(kept, text))
    return _LONG.sub(lambda found: found.group() if _plainly(found.group()) else "…", text)


def _plainly(word: str) -> bool:
    """Whether a long word is a name made of words rather than a key."""
    return not any(c.isdigit() for c in word) and "_" in word and "+" not in word and "/" not in word
