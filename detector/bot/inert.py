"""Text from a repository in a comment, made harmless: it mentions nobody, links nowhere, commands nothing, is no HTML.

Code and paths go into code spans or fences that are longer than any run of backticks inside. Prose is escaped
character by character; a zero-width space behind what begins a reference (``@ # ! ~ % $ &``) keeps the host from
linking it, since mentions are looked for after backslashes are gone.
"""

from __future__ import annotations

import html
import re
import unicodedata

_SPAN = re.compile(r"(`+)(.+?)(?<!`)\1(?!`)")
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#!|~])")
_REFERENCE = re.compile(r"([@#!~%$&])(?=\S)")
_ADDRESS = re.compile(r"(://|\bwww\.|\b(?=[0-9a-f]{7,40}\b))", re.IGNORECASE)
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_BREAK = "\u200b"
_HTML = {"<": "&lt;", ">": "&gt;", "|": "\u2223"}  # a bar ends a table's cell, escaped or not on some hosts


def visible(text: str) -> str:
    """Without terminal sequences, control and formatting characters (right-to-left overrides among them)."""
    kept = []
    for char in _ANSI.sub("", text).replace("\r\n", "\n"):
        kind = unicodedata.category(char)
        if char in "\n\t" or kind not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
            kept.append(char)
        else:
            kept.append("\ufffd" if kind != "Cf" else "")
    return "".join(kept)


def is_plain(text: str) -> bool:
    """Whether a reader sees exactly what the text holds, so that it may be suggested as code."""
    return visible(text) == text


def one_line(text: str, limit: int = 600) -> str:
    """Visible text on one line, cut at ``limit`` characters."""
    flat = " ".join(visible(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def code(text: str, limit: int = 200) -> str:
    """A code span that its content cannot leave."""
    flat = one_line(text, limit).replace("|", "\u2223")  # a table's cell ends at a bar even in code
    if not flat:
        return ""
    longest = max((len(run) for run in re.findall("`+", flat)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def prose(text: str, limit: int = 1500) -> str:
    """One line of text with its code spans kept; all other markup, references and addresses without effect."""
    flat = one_line(text, limit)
    pieces: list[str] = []
    position = 0
    for found in _SPAN.finditer(flat):
        pieces += (_escaped(flat[position : found.start()]), code(found.group(2).strip(), limit))
        position = found.end()
    pieces.append(_escaped(flat[position:]))
    whole = "".join(pieces)
    # Lists, headings and a host's commands ("/close") begin a line; nothing from outside may.
    return whole if whole[:1].isalpha() or whole[:1] in ("`", "") else _BREAK + whole


def _escaped(text: str) -> str:
    return _MARKUP.sub(lambda m: _HTML.get(m.group(1), "\\" + m.group(1)), _unlinked(text))


def _unlinked(text: str) -> str:
    broken = _ADDRESS.sub(lambda m: m.group(1)[:1] + _BREAK + m.group(1)[1:], text)
    return _REFERENCE.sub(lambda m: m.group(1) + _BREAK, broken)


def element(text: str, limit: int = 200) -> str:
    """Text inside an HTML element of ours, where Markdown means nothing."""
    return html.escape(_unlinked(one_line(text, limit)), quote=False)


def fence(text: str, kind: str) -> str:
    """A fenced block that its content cannot end. Tabs and line ends stay; what is not visible is replaced."""
    shown = visible(text.replace("\r\n", "\n")).rstrip("\n")
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{kind}\n{shown}\n{ticks}"


def clip(body: str, limit: int, note: str) -> str:
    """A body within the host's limit, cut at a line end; fences and folds are closed, so that the note shows."""
    if len(body) <= limit:
        return body
    closing = f"\n\n</details>\n\n{note}\n"
    kept = body[: limit - len(closing) - 64].rpartition("\n")[0]
    open_fence = ""
    for line in kept.split("\n"):
        ticks = re.match("`{3,}", line)
        if ticks and not open_fence:
            open_fence = ticks.group()
        elif ticks and line.strip() == open_fence:
            open_fence = ""
    unclosed = kept.count("<details>") > kept.count("</details>")
    return kept + (f"\n{open_fence}" if open_fence else "") + (closing if unclosed else f"\n\n{note}\n")
