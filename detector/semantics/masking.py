"""Source text without the bodies of definitions in which there is nothing to find.

Parsing and walking dominate the cost of a scan, and most functions of a project are set-up code or nobody's. What is
left keeps its lines and columns, so that positions, comments and texts still are those of the whole file.
"""

from __future__ import annotations

from collections.abc import Callable

from awp_lint.detector.semantics.facts import FileFacts, FunctionFact

_TELLING = ("register_", "compile", "graph")  # what rules look for in constructors


def source_lines(text: str) -> list[str]:
    """The lines of a text as ``ast`` counts them, without their ends."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


def lines_with(word: str, text: str) -> list[int]:
    """The numbers of the lines, as ``ast`` counts them, that hold a word."""
    if "\r" in text:
        return [number for number, line in enumerate(source_lines(text), 1) if word in line]
    found: list[int] = []
    number, counted = 1, 0
    at = text.find(word)
    while at >= 0:
        number += text.count("\n", counted, at)
        counted = at
        if not found or found[-1] != number:
            found.append(number)
        at = text.find(word, at + 1)
    return found


def without_bodies(text: str, facts: FileFacts, needed: Callable[[int, FunctionFact], bool]) -> str:
    """``text`` with ``pass`` for the body of every function that, like all functions in it, is not needed.

    Constructors that register or compile something stay beside methods that do: it tells what those work with.
    """
    keep: set[int] = set()
    classes: set[int] = set()

    def stays(index: int) -> None:
        while index > 0 and index not in keep:
            keep.add(index)
            classes.add(facts.functions[index].cls)
            index = facts.functions[index].outer

    for index, function in enumerate(facts.functions):
        if needed(index, function):
            stays(index)
    lines = source_lines(text)
    for index, function in enumerate(facts.functions):
        if function.cls in classes and function.cls >= 0 and function.qualname.endswith("__init__"):
            body = "\n".join(lines[function.line - 1 : function.body[1]])
            if any(word in body for word in _TELLING):
                stays(index)
    removed = [
        function.body
        for index, function in enumerate(facts.functions)
        if function.body[0] and index not in keep and function.outer <= 0  # what lies in a removed one goes with it
    ]
    if not removed:
        return text
    for first, last, indent in removed:
        blanks = lines[first - 1][:indent]
        last = min(last, len(lines))
        lines[first - 1 : last] = [""] * (last - first + 1)
        lines[first - 1] = f"{blanks}pass"
    return "\n".join(lines)
