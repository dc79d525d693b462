"""Where a mark opens and closes in a code object's bytecode (Python 3.11+ positions; used on 3.12+).

A mark covers a set of instructions: for a call exactly the call instruction, so that evaluating its arguments is not
charged to it; for a statement or loop every instruction whose position lies inside its span; for a function all.
It opens at each covered instruction that can be entered from outside and closes at each instruction outside that can be
entered from a covered one, exception handlers included. Instructions that leave the frame (return, yield) are never
covered: the mark closes as they are reached, and opens again when the frame is resumed, so that nothing that others run
meanwhile is charged to it. All this is static: no state is kept per frame.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

from awp_lint.detector.profiling.agent.plan import AgentMark

_CALLS = frozenset(("CALL", "CALL_KW", "CALL_FUNCTION_EX", "CALL_FUNCTION_KW", "CALL_METHOD", "CALL_FUNCTION"))
_LEAVE = frozenset(("RETURN_VALUE", "RETURN_CONST", "YIELD_VALUE", "RETURN_GENERATOR", "INTERPRETER_EXIT"))
_ENDS = frozenset(("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "INTERPRETER_EXIT"))
_GOTO = frozenset(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE"))
# Instructions that are cheap, cannot run user code worth timing, and have one way on: a mark may close before them.
_CHEAP = frozenset(("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF", "POP_TOP", "NOP", "POP_EXCEPT")) | _GOTO
_PIECES = frozenset(("<lambda>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"))
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs) | frozenset(getattr(dis, "hasjump", ()))


class Instruction(NamedTuple):
    """One instruction: where it starts, where the next one does, and its source span (1-based lines, 0-based bytes)."""

    offset: int
    end: int
    name: str
    target: int | None
    span: tuple[int, int, int, int] | None


class Points(NamedTuple):
    """Where one mark's events are, as byte offsets into the code."""

    opens: tuple[int, ...]
    closes: tuple[int, ...]
    ticks: tuple[int, ...]
    inside: tuple[tuple[int, int], ...]  # covered byte ranges, for exceptions that leave the frame
    size: int  # how many instructions are covered: a larger mark encloses a smaller one
    looped: bool  # an opening instruction can also be reached from inside: the callback must look at the frame


def instructions(code: CodeType) -> list[Instruction]:
    """The code's instructions in order, caches folded into the instruction that they follow."""
    found = [
        (i.offset, i.opname, i.argval if i.opcode in _JUMPS else None, _span(i)) for i in dis.get_instructions(code)
    ]
    ends = [entry[0] for entry in found[1:]] + [len(code.co_code)]
    return [Instruction(o, e, name, target, span) for (o, name, target, span), e in zip(found, ends)]


def _span(instruction: Any) -> tuple[int, int, int, int] | None:
    p = instruction.positions
    if p is None or p.lineno is None or p.end_lineno is None or p.col_offset is None or p.end_col_offset is None:
        return None
    return (p.lineno, p.col_offset, p.end_lineno, p.end_col_offset)


def handlers(code: CodeType) -> list[tuple[int, int, int]]:
    """The exception table as ``(start, end, target)`` byte offsets, end exclusive."""
    table: list[tuple[int, int, int]] = []
    data = iter(code.co_exceptiontable)

    def varint() -> int:
        byte = next(data)
        value = byte & 63
        while byte & 64:
            byte = next(data)
            value = value << 6 | byte & 63
        return value

    try:
        while True:
            start = varint() * 2
            length = varint() * 2
            target = varint() * 2
            varint()
            table.append((start, start + length, target))
    except StopIteration:
        return table


def successors(code: CodeType, listing: list[Instruction]) -> dict[int, set[int]]:
    """Offsets that may run right after each instruction, in this frame."""
    at = {ins.offset: n for n, ins in enumerate(listing)}
    table = handlers(code)
    following: dict[int, set[int]] = {}
    for ins in listing:
        after: set[int] = set()
        if ins.name not in _ENDS and ins.name not in _GOTO and ins.end in at:
            after.add(ins.end)
        if ins.target is not None and ins.target in at:
            after.add(ins.target)
            if ins.name == "FOR_ITER":
                # An exhausted loop jumps over the clean-up instructions at its target, which never run then.
                for skipped in listing[at[ins.target] + 1 : at[ins.target] + 3]:
                    after.add(skipped.offset)
                    if skipped.name not in ("POP_TOP", "POP_ITER"):
                        break
        for start, end, target in table:
            if start <= ins.offset < end and target in at:
                after.add(target)
        following[ins.offset] = after
    return following


def nested(code: CodeType) -> Iterator[CodeType]:
    """The code object and all that it holds."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


class Analysis:
    """Bytecode facts of one code object, computed once for all its marks."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.listing = instructions(code)
        self.following = successors(code, self.listing)
        self.preceding: dict[int, set[int]] = {}
        for origin, targets in self.following.items():
            for target in targets:
                self.preceding.setdefault(target, set()).add(origin)
        self.by_offset = {ins.offset: ins for ins in self.listing}

    def points(self, mark: AgentMark) -> Points | None:
        """Where ``mark`` opens and closes in this code, or None where this code does not hold it."""
        if mark.kind == "call":
            covered = self._call(mark)
        elif mark.kind == "function":
            covered = self._function(mark)
        else:
            covered = self._region(mark)
        if not covered:
            return None
        return self._points(mark, covered)

    def _call(self, mark: AgentMark) -> set[int]:
        # The start of a method call's position moves to the attribute's line when it spans lines; its end does not.
        hits = {
            ins.offset
            for ins in self.listing
            if ins.name in _CALLS
            and ins.span is not None
            and ins.span[2:] == (mark.end_line, mark.end_column)
            and ins.span[:2] >= (mark.line, mark.column)
        }
        return hits or self._region(mark)

    def _region(self, mark: AgentMark) -> set[int]:
        first, last = (mark.line, mark.column), (mark.end_line, mark.end_column)
        if self.code.co_name in _PIECES and not self._holds(first, last):
            return set()  # a lambda or comprehension inside the marked statement: the statement's own code covers it
        return {
            ins.offset
            for ins in self.listing
            if ins.span is not None and first <= ins.span[:2] and ins.span[2:] <= last and ins.name != "RESUME"
        }

    def _holds(self, first: tuple[int, int], last: tuple[int, int]) -> bool:
        """Whether this code's own source reaches from ``first`` to ``last``."""
        entered = next((n for n, ins in enumerate(self.listing) if ins.name == "RESUME"), -1)
        spans = [ins.span for ins in self.listing[entered + 1 :] if ins.span is not None]
        return bool(spans) and min(s[:2] for s in spans) <= first and max(s[2:] for s in spans) >= last

    def _function(self, mark: AgentMark) -> set[int]:
        name = getattr(self.code, "co_qualname", self.code.co_name).replace(".<locals>", "")
        if name != mark.function or self.code.co_firstlineno != mark.function_line:
            return set()
        resumes = [n for n, ins in enumerate(self.listing) if ins.name == "RESUME"]
        start = resumes[0] + 1 if resumes else 0
        return {ins.offset for ins in self.listing[start:] if ins.name != "RESUME"}

    def _points(self, mark: AgentMark, covered: set[int]) -> Points | None:
        inner = {o for o in covered if self.by_offset[o].name not in _LEAVE}
        if not inner:
            return None
        opens: set[int] = set()
        looped = False
        for offset in inner:
            before = self.preceding.get(offset, set())
            if not before or any(origin not in inner for origin in before):
                opens.add(offset)
                looped = looped or any(origin in inner for origin in before if origin != offset)
        closes: set[int] = set()
        for offset in inner:
            for target in self.following[offset]:
                if target in inner:
                    continue
                name = self.by_offset[target].name
                if name == "RESUME":
                    continue
                ambiguous = any(origin not in inner for origin in self.preceding[target])
                # Where others arrive at the same place too, close before the last cheap step instead.
                cheap = self.by_offset[offset].name in _CHEAP and self.following[offset] == {target}
                closes.add(offset if ambiguous and cheap and offset not in opens else target)
        return Points(
            opens=tuple(sorted(opens)),
            closes=tuple(sorted(closes)),
            ticks=self._ticks(mark, inner, opens) if mark.unit else (),
            # An exception's reported offset is the instruction's, one of its caches', or (3.13, when a Python callee
            # raised) the unit before it.
            inside=tuple((o - 2, self.by_offset[o].end) for o in sorted(covered)),
            size=len(covered),
            looped=looped,
        )

    def _ticks(self, mark: AgentMark, inner: set[int], opens: set[int]) -> tuple[int, ...]:
        if mark.kind != "loop":
            return tuple(sorted(opens))
        widest, head = -1, None
        for offset in inner:
            ins = self.by_offset[offset]
            if ins.target is not None and ins.target <= offset and offset - ins.target > widest:
                widest, head = offset - ins.target, ins.target
        if head is None:
            return ()
        ins = self.by_offset[head]
        while ins.name == "EXTENDED_ARG":  # of the header of a long loop
            ins = self.by_offset[ins.end]
        return (ins.end,) if ins.name == "FOR_ITER" else (head,)
