"""A source file as text, with the positions that ``ast`` and edits speak.

``ast`` counts columns in UTF-8 bytes and lines by ``\\n``, ``\\r\\n`` or ``\\r`` (never by form feed); edits count code
points of the decoded text. This module is the only place that converts between them.
"""

from __future__ import annotations

import codecs
import io
import itertools
import re
import tokenize
from dataclasses import dataclass, field
from functools import cached_property

from awp_lint.detector.finding import Span

_LINE_END = re.compile(r"\r\n|\r|\n")


class SourceError(Exception):
    """A file that cannot be turned into text; the message is one line for a person."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


# Codecs for names of hosts and for nothing at all; long texts take them hours.
_NO_SOURCE = frozenset(("idna", "punycode", "undefined"))


@dataclass(frozen=True)
class Source:
    """The decoded text of a file, without its byte order mark, line endings untouched."""

    path: str
    text: str
    encoding: str = "utf-8"
    bom: bool = False
    raw: bytes = field(default=b"", repr=False)

    @classmethod
    def decode(cls, path: str, raw: bytes) -> Source:
        """Decode by PEP 263. Raises :class:`SourceError` on NUL bytes, unknown or wrong encodings."""
        if b"\0" in raw:
            raise SourceError("contains NUL bytes: not a Python source file")
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        except SyntaxError as error:
            if "missing encoding" not in str(error):
                raise SourceError(str(error)) from None
            encoding = "utf-8"  # bytes that are none, in the first lines: told with their place below
        bom = raw.startswith(codecs.BOM_UTF8)
        body = raw[len(codecs.BOM_UTF8) :] if bom else raw
        plain = "utf-8" if encoding == "utf-8-sig" else encoding
        try:
            if plain in _NO_SOURCE:
                raise LookupError(plain)
            text = body.decode(plain)
        except UnicodeDecodeError as error:
            line = body.count(b"\n", 0, error.start) + 1
            raise SourceError(
                f"not {plain}: byte {body[error.start]:#04x}; save as UTF-8 or declare it", line
            ) from None
        except (LookupError, ValueError):  # codecs of bytes, such as rot13
            raise SourceError(f"{plain} is no encoding of source code") from None
        return cls(path=path, text=text, encoding=plain, bom=bom, raw=raw)

    def encode(self, text: str) -> bytes:
        """Bytes of ``text`` in this file's encoding, with its byte order mark."""
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)

    @cached_property
    def line_starts(self) -> list[int]:
        """Code-point offset of each line; line 1 is at index 0."""
        if "\r" in self.text:
            return [0, *(m.end() for m in _LINE_END.finditer(self.text))]
        lines = self.text.split("\n")
        lines.pop()
        return [0, *itertools.accumulate(len(line) + 1 for line in lines)]

    @cached_property
    def newline(self) -> str:
        """The file's first line ending, ``\\n`` for a file of one line."""
        found = _LINE_END.search(self.text)
        return found.group() if found else "\n"

    def line_text(self, line: int) -> str:
        """The text of a 1-based line, its ending left out."""
        start = self.line_starts[line - 1]
        end = self.line_starts[line] if line < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def offset(self, line: int, utf8_column: int) -> int:
        """Code-point offset of an ``ast`` position (1-based line, 0-based column in UTF-8 bytes)."""
        start = self.line_starts[line - 1]
        piece = self.text[start : start + utf8_column]
        if piece.isascii():
            return start + utf8_column
        encoded = self.line_text(line).encode("utf-8", "surrogatepass")[:utf8_column]
        return start + len(encoded.decode("utf-8", "surrogatepass"))

    def span(self, line: int, column: int, end_line: int, end_column: int) -> Span:
        """The 1-based code-point span of an ``ast`` range."""
        return Span(
            line,
            self.offset(line, column) - self.line_starts[line - 1] + 1,
            end_line,
            self.offset(end_line, end_column) - self.line_starts[end_line - 1] + 1,
        )
