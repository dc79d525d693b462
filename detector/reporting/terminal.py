"""Styled lines and the two ways to put them out: with rich on a terminal, plain anywhere else.

Renderers build lines of (text, style) pieces, so that piped output needs no rich import and no width.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TextIO

Piece = tuple[str, str]
Line = tuple[Piece, ...]


# What a terminal would obey, or show in another order than it stands: names of files and code may hold anything.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?=.)")


def visible(text: str) -> str:
    """The text with control characters spelt out; tabs and line ends stay."""
    return _CONTROL.sub(lambda found: ascii(found.group())[1:-1], text)


def line(*pieces: str | Piece) -> Line:
    """A line from plain strings and (text, style) pairs, control characters spelt out."""
    return tuple((visible(p), "") if isinstance(p, str) else (visible(p[0]), p[1]) for p in pieces)


def use_color(stream: TextIO, choice: str) -> bool:
    """Whether to style: ``always``, ``never``, or ``auto`` by terminal, ``NO_COLOR``, ``FORCE_COLOR`` and ``TERM``."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def plain(lines: Iterable[Line]) -> str:
    """The text without styles, no trailing blanks."""
    return "".join("".join(text for text, _ in pieces).rstrip() + "\n" for pieces in lines)


def write(lines: Iterable[Line], stream: TextIO, color: bool) -> None:
    """Write lines to a stream, styled where asked; long lines are left to the terminal to wrap."""
    if not color:
        stream.write(plain(lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, force_terminal=True, highlight=False, soft_wrap=True, emoji=False, markup=False)
    for pieces in lines:
        console.print(Text.assemble(*((text, style or "default") for text, style in pieces)))
