"""What a condition says of a function's parameters, and what a call passes for them.

A *state* of a parameter is what a branch needs of it: ``given`` (not None), ``none``, ``true`` or ``false``. What a
call passes is told by a short code: ``None``, ``True``, ``False``, ``const`` (another constant or a display: never
None), the empty string (unknown), ``=x`` (the caller's own parameter ``x`` as it came) or ``~x`` (the same, but where
it is not None it may have been replaced).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

State = tuple[str, str]  # (parameter, state)

_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.JoinedStr, ast.Lambda)
_CONSTANTS = {None: "None", True: "True", False: "False"}
_RULED_OUT = {
    "given": frozenset(("None",)),
    "true": frozenset(("None", "False")),
    "false": frozenset(("True",)),
    "none": frozenset(("True", "False", "const")),
}


def held(test: ast.expr, taken: bool) -> tuple[State, ...]:
    """What holds of plain names where ``test`` came out as ``taken``."""
    kind = type(test)
    if kind is ast.Name:
        return ((test.id, "true" if taken else "false"),)  # type: ignore[attr-defined]
    if kind is ast.UnaryOp:
        return held(test.operand, not taken) if type(test.op) is ast.Not else ()  # type: ignore[attr-defined]
    if kind is ast.BoolOp:
        if (type(test.op) is ast.And) is not taken:  # type: ignore[attr-defined]
            return ()
        return tuple(state for part in test.values for state in held(part, taken))  # type: ignore[attr-defined]
    if kind is ast.Compare:
        return _compared(test, taken)  # type: ignore[arg-type]
    if kind is ast.Call and taken:
        func, args = test.func, test.args  # type: ignore[attr-defined]
        if type(func) is ast.Name and func.id == "isinstance" and args and type(args[0]) is ast.Name:
            return ((args[0].id, "given"),)
    return ()


def _compared(test: ast.Compare, taken: bool) -> tuple[State, ...]:
    right = test.comparators[0]
    if len(test.ops) != 1 or type(test.left) is not ast.Name:
        return ()
    if type(right) is not ast.Constant or right.value is not None:
        return ()
    kind = type(test.ops[0])
    if kind is not ast.Is and kind is not ast.IsNot:
        return ()
    return ((test.left.id, "none" if (kind is ast.Is) is taken else "given"),)


def code_of(node: ast.expr) -> str:
    """The code of a literal; the empty string for everything else."""
    if type(node) is ast.Constant:
        value = node.value
        return _CONSTANTS[value] if value is None or value is True or value is False else "const"
    return "const" if isinstance(node, _DISPLAYS) else ""


def passed_for(passed: Sequence[str], name: str, position: int | None) -> str | None:
    """The code that a call passes for a parameter, None where it leaves it at its default.

    ``position`` is that among the call's positional arguments, None for a parameter that goes by its name only.
    """
    count = 0
    found: str | None = None
    for entry in passed:
        if entry[:1] == "*":
            return ""  # unpacked: may hold anything
        keyword, equals, code = entry.partition("=")
        if equals and keyword:
            if keyword == name:
                found = code
        else:
            if count == position:
                found = entry
            count += 1
    return found


def ruled_out(state: str, code: str) -> bool:
    """Whether a parameter for which this code is passed is never in the state."""
    return code in _RULED_OUT[state]


def passed_on(state: str, code: str) -> str | None:
    """The caller's own parameter that decides the state, where the code says that it is passed on as it came."""
    if code[:1] == "=" or (code[:1] == "~" and state in ("given", "true")):
        return code[1:]
    return None
