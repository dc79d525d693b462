"""What a condition says of a function's parameters, and what a call passes for them.

A *state* of a parameter is what a branch needs of it: ``given`` (not None), ``none``, ``true`` or ``false``. What a
call passes is told by a short code: ``None``, ``True``, ``False``, ``const`` (another constant or a display: never
None), the empty string (unknown), ``=x`` (the caller's own parameter ``x`` as it came) or ``~x`` (the same, but where
it is not None it may have been replaced), ``$self.config.x``, a switch of the caller's (see :mod:`.switches`), or
``#()``, nothing in a row, ``#'a'``, a word, and, of a parameter's default, ``#0``, a number.

States are told of switches, too; of both also comparisons with constants: ``=='c'``, ``>=0``. Where one of several
switches has to be in its state, names and states stand beside each other (:data:`~.switches.EITHER`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from awp_lint.detector.semantics.switches import ANOTHER, EITHER, ONE_OF, VARIES, default_of, switch, switched_off

State = tuple[str, str]  # (parameter, state)

#: What was saved of an object of the kind that is made: ``size=state["size"]``.
SAVED = "%"
#: ``**kwargs`` of the caller's own, as they came.
HANDED_ON = "**="
#: Texts that choose one of several ways.
_WORD = re.compile(r"[\w.+-]{1,40}")
_FAR = 5  # arguments that nobody counts out without their names

_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.JoinedStr, ast.Lambda)
_COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Lt: ("<", ">="), ast.GtE: (">=", "<"),
    ast.Gt: (">", "<="), ast.LtE: ("<=", ">"),
}  # fmt: skip
_AMONG: dict[type[ast.cmpop], tuple[str, str]] = {ast.In: ("==", "!="), ast.NotIn: ("!=", "==")}
_CONSTANTS = {None: "None", True: "True", False: "False"}
_RULED_OUT = {
    "given": frozenset(("None",)),
    "true": frozenset(("None", "False")),
    "false": frozenset(("True",)),
    "none": frozenset(("True", "False", "const")),
}


#: What local names need of switches in order to be true: ``often = self.every > 0 and …``; None: nobody knows.
Flags = Mapping[str, "State | None"]
#: What a name needs that was only given what is false.
NEVER: State = ("", "")


def held(test: ast.expr, taken: bool, flags: Flags = MappingProxyType({})) -> tuple[State, ...]:
    """What holds of plain names and switches where ``test`` came out as ``taken``."""
    kind = type(test)
    if kind is ast.Name:
        needed = flags.get(test.id) if taken else None  # type: ignore[attr-defined]
        return ((test.id, "true" if taken else "false"), *(() if needed is None else (needed,)))  # type: ignore[attr-defined]
    if kind is ast.Attribute or (kind is ast.Call and getattr(test.func, "id", "") == "getattr"):  # type: ignore[attr-defined]
        name = switch(test)
        return () if name is None else ((name, "true" if taken else "false"),)
    if kind is ast.UnaryOp:
        return held(test.operand, not taken, flags) if type(test.op) is ast.Not else ()  # type: ignore[attr-defined]
    if kind is ast.BoolOp:
        found = [held(part, taken, flags) for part in test.values]  # type: ignore[attr-defined]
        if (type(test.op) is ast.And) is taken:  # type: ignore[attr-defined]
            return tuple(state for part in found for state in part)
        either = either_of([next((state for state in part if "." in state[0]), None) for part in found])
        return () if either is None else (either,)
    if kind is ast.Compare:
        return _compared(test, taken)  # type: ignore[arg-type]
    if kind is ast.Call:
        func, args = test.func, test.args  # type: ignore[attr-defined]
        if type(func) is ast.Name and func.id == "isinstance" and len(args) == 2:
            if type(args[0]) is ast.Name:
                return ((args[0].id, "given"),) if taken else ()
            if not taken and type(args[1]) is ast.Name and (name := switch(args[0])) is not None:
                return ((name, f"{ANOTHER}{args[1].id}"),)
    return ()


def either_of(states: Sequence[State | None]) -> State | None:
    """That one of several switches is in its state; None where nothing is known of one."""
    known = [state for state in dict.fromkeys(states) if state is not None]
    if not known or None in states:
        return None
    return EITHER.join(name for name, _ in known), EITHER.join(state for _, state in known)


def turns(loop: ast.For | ast.AsyncFor | ast.While) -> ast.Compare | None:
    """What must hold for a loop to be entered whose turns a switch counts: ``self.rounds > 1`` of
    ``range(1, self.rounds)``."""
    call = None if type(loop) is ast.While else loop.iter  # type: ignore[union-attr]
    if type(call) is not ast.Call or type(call.func) is not ast.Name or call.func.id != "range" or call.keywords:
        return None
    first: ast.expr = call.args[0] if len(call.args) == 2 else ast.Constant(0)
    if len(call.args) not in (1, 2) or type(first) is not ast.Constant or switch(call.args[-1]) is None:
        return None
    return ast.Compare(left=call.args[-1], ops=[ast.Gt()], comparators=[first])


def _compared(test: ast.Compare, taken: bool) -> tuple[State, ...]:
    right = test.comparators[0]
    if len(test.ops) != 1 or (type(right) is not ast.Constant and type(test.ops[0]) not in _AMONG):
        return ()
    name = test.left.id if type(test.left) is ast.Name else switch(test.left)
    kind = type(test.ops[0])
    if name is None:
        return ()
    if kind in _AMONG:
        chosen = _words(right)
        return ((name, f"{_AMONG[kind][not taken]}{ONE_OF.join(chosen)}"),) if chosen else ()
    assert type(right) is ast.Constant
    if right.value is None:
        if kind is ast.Is or kind is ast.IsNot:
            return ((name, "none" if (kind is ast.Is) is taken else "given"),)
        return ()
    words = _COMPARED.get(kind)
    if words is None or type(right.value) not in (str, int, float) or ONE_OF in str(right.value):
        return ()
    return ((name, f"{words[not taken]}{right.value!r}"),)


def _words(node: ast.expr) -> list[str]:
    """The texts of the words in a display; empty where it holds anything else."""
    parts: list[ast.expr] = getattr(node, "elts", [])
    found = [p.value for p in parts if type(p) is ast.Constant and type(p.value) is str and _WORD.fullmatch(p.value)]
    return [repr(word) for word in found] if len(found) == len(parts) else []


def code_of(node: ast.expr) -> str:
    """The code of a literal or a switch; the empty string for everything else."""
    if type(node) is ast.Constant:
        value = node.value
        if type(value) is str and _WORD.fullmatch(value):
            return f"#{value!r}"
        return _CONSTANTS[value] if value is None or value is True or value is False else "const"
    if type(node) is ast.Attribute:
        name = switch(node)
        return "" if name is None else f"${name}"
    if type(node) in (ast.Tuple, ast.List) and not node.elts:  # type: ignore[attr-defined]
        return "#()"
    return "const" if isinstance(node, _DISPLAYS) else ""


def code_of_default(name: str, node: ast.expr) -> str:
    """The code of a parameter's default: as :func:`code_of`, but a number or a text is told, unless it is a size or the
    like."""
    code = code_of(node)
    if code == "const" or code[:2] in ("#'", '#"') or isinstance(node, ast.UnaryOp):
        text = default_of(node)
        if text[:1].isdigit() or text[:1] in ("-", ".", "'", '"'):
            return "const" if VARIES.fullmatch(name) else f"#{text}"
    return code


#: Before a switch and its state: what is passed is given, or true, in that state only.
GIVEN = "&"


def given_by(needed: State) -> str:
    """The code of what is given in a switch's state only."""
    return f"{GIVEN}{needed[0]}\t{needed[1]}".replace("=", "\r")


def needed_for(state: str, code: str) -> State | None:
    """The switch and its state without which what a code tells of is never in a state."""
    if code[:1] != GIVEN or state not in ("given", "true"):
        return None
    name, _, wanted = code[1:].replace("\r", "=").partition("\t")
    return (name, wanted) if "." in name else None


def filled_by(code: str) -> str | None:
    """The caller's own parameter without which what a code tells of is never true: the item of a list of flags."""
    name = code[1:].partition("\t")[0] if code[:1] == GIVEN else ""
    return name if name and "." not in name else None


def passed_for(passed: Sequence[str], name: str, position: int | None) -> str | None:
    """The code that a call passes for a parameter, None where it leaves it at its default, :data:`HANDED_ON` where that
    is left to what the caller was given by names that are none of its parameters.

    ``position`` is that among the call's positional arguments, None for a parameter that goes by its name only.
    """
    count = 0
    found: str | None = None
    unpacked = False  # what is unpacked may hold anything but what is passed by itself
    handed = True
    for entry in passed:
        if entry[:1] == "*":
            unpacked = True
            far = entry == "*" and (position is None or position - count >= _FAR)
            handed = handed and (far or entry == HANDED_ON)
            continue
        keyword, equals, code = entry.partition("=")
        if equals and keyword:
            if keyword == name:
                return code
        else:
            if count == position and not unpacked:
                found = entry
            count += 1
    if found is None and unpacked:
        return HANDED_ON if handed else ""
    return found


def ruled_out(state: str, code: str) -> bool:
    """Whether a parameter for which this code is passed is never in the state."""
    if code[:1] == "#":
        return switched_off(state, code[1:])
    return code in _RULED_OUT.get(state, ())


def passed_on(state: str, code: str) -> str | None:
    """The caller's own parameter that decides the state, where the code says that it is passed on as it came."""
    if code[:1] == "=" or (code[:1] == "~" and state in ("given", "true")):
        return code[1:]
    return None
