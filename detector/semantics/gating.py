"""Parts of functions that only some calls make run: ``if mask is not None:`` below a parameter that most leave out.

A part becomes a node of its own in the call graph where at least one call rules its condition out: the calls in it hang
on that node, and only those calls of the function lead there that may make the condition hold. A parameter that is
handed on as it came is followed to the callers of the function around. So a loop that leaves the parameter out does not
heat what stands below it, and what no call makes run is reached by none.

The same holds for what a model's configuration switches off by default, and for what those who call a model of
transformers leave out or always give: they pass token ids and a mask, and no labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from awp_lint.detector.semantics.conditions import HANDED_ON, SAVED, needed_for, passed_for, passed_on, ruled_out
from awp_lint.detector.semantics.edges import Edge
from awp_lint.detector.semantics.facts import GUARD_REFERENCE, GUARD_SKIP, CallFact, FunctionFact, Ref

_MANY = 16  # functions that one dynamic call may reach: more of them say nothing of each
#: States of parameters of a model's ``forward`` that callers from outside do not bring about.
_UNUSUAL = frozenset((
    ("attention_mask", "none"), ("input_ids", "none"), ("inputs_embeds", "given"), ("labels", "given"),
    ("encoder_attention_mask", "given"), ("encoder_hidden_states", "given"),
))  # fmt: skip
_NEVER = Edge(-1, -1, (), 0, False)  # stands for the calls that rule a part out where none is written down

_OF_MODULES = ("forward", "__call__")

Part = tuple[int, str, str]  # function, parameter, state


class Unresolved:
    """What calls pass of which nobody knows what they run: such a call may be of any function of that name."""

    def __init__(self) -> None:
        self._by_name: dict[str, tuple[set[str], int]] = {}
        self._keywords: set[str] = set()  # of all names
        self._of_modules: dict[int, tuple[set[str], int]] = {}  # by file: calls of parts of self and of local values

    def note(self, file: int, call: CallFact, name: str) -> None:
        """Note a call in a file."""
        if not call.passed:
            return
        keywords = {code.partition("=")[0] for code in call.passed if code[:1] != "=" and code[-2:] != f"={SAVED}"}
        positional = sum(1 for code in call.passed if "=" not in code or code[:1] == "=")
        common = name in _OF_MODULES  # what stands where is told by names only: the file's own calls are meant
        self._keywords |= keywords
        self._add(self._by_name, name, keywords, 0 if common else positional)
        if not isinstance(call.callee, str) and call.passed[0] != "=self":  # a module is not handed the one around it
            local = common or call.callee[0] != "." or call.callee[1] == ("self",)
            self._add(self._of_modules, file, keywords, positional if local else 0)

    @staticmethod
    def _add(table: dict[Any, tuple[set[str], int]], key: object, keywords: set[str], positional: int) -> None:
        known = table.get(key)
        if known is None:
            table[key] = (keywords, positional)
        else:
            known[0].update(keywords)
            table[key] = (known[0], max(known[1], positional))

    def may_construct(self, cls: str, name: str, position: int) -> bool:
        """Whether one of them may pass a parameter of the constructor of a class of this name."""
        if name in self._keywords:
            return True
        found = [self._by_name.get(cls), self._by_name.get("cls")]
        return any(known is not None and known[1] > position >= 0 for known in found)

    def may_pass(self, file: int, function: FunctionFact, name: str, position: int) -> bool:
        """Whether one of them may pass a parameter of a function in a file."""
        short = function.qualname.rpartition(".")[2]
        found = [self._by_name.get(short)]
        if short in _OF_MODULES:
            found.append(self._of_modules.get(file))
        return any(known is not None and (name in known[0] or known[1] > position >= 0) for known in found)


class Gates:
    """The parts that are nodes of their own. ``edges`` are those of the call graph, which grow by them."""

    def __init__(
        self,
        functions: Sequence[FunctionFact],
        files: Sequence[int],
        edges: list[list[Edge]],
        unresolved: Unresolved,
        off: Callable[[int, str, str], bool] = lambda gid, switch, state: False,
        model: Callable[[int], bool] = lambda gid: False,
    ) -> None:
        """``off`` says whether a switch of a function rules a state out by default, ``model`` whether a function is the
        ``forward`` of a model of transformers."""
        self._off = off
        self._model = model
        self._functions = functions
        self._files = files
        self._edges = edges
        self._unresolved = unresolved
        self._callers: dict[int, list[tuple[int, Edge]]] = {}
        self._by_name: set[str] | None = None
        self.nodes: dict[Part, int] = {}
        self.of_function: dict[int, list[int]] = {}
        self.callers: dict[int, list[int]] = {}  # of a part: the functions whose calls may make it run
        self.shut: set[int] = set()  # the parts that no call from outside makes run
        self._open: set[Part] = set()  # … that calls may make run of which nobody knows what they run

    def build(self) -> None:
        """Make the nodes and hang the edges over."""
        parts = self._asked()
        if not parts:
            return
        for node, found in enumerate(self._edges):
            for edge in found:
                self._callers.setdefault(edge.target, []).append((node, edge))
        sites = self._sites(parts)
        left = self._left_off(sites)
        for part in sorted(self._divided(sites) | left):
            node = self.nodes[part] = len(self._edges)
            self._edges.append([])
            self.of_function.setdefault(part[0], []).append(node)
            if "." in part[1] or self._unusual(part) or part in left:
                self.shut.add(node)
        if self.nodes:
            self._hang_over()
            self._lead_there(sites)
        self._callers.clear()

    def _asked(self) -> list[Part]:
        return [
            (gid, *state)
            for gid, function in enumerate(self._functions)
            if function.branches
            for state in dict.fromkeys(branch[:2] for branch in function.branches)
        ]

    def _sites(self, parts: Iterable[Part]) -> dict[Part, list[tuple[int, Edge, Part | None]]]:
        """For each part the edges that may make it run: of a node, with the caller's own part that decides. An edge
        that rules it out is left out, and the part told by a last entry without a node (-1)."""
        found: dict[Part, list[tuple[int, Edge, Part | None]]] = {}
        pending = list(parts)
        while pending:
            part = pending.pop()
            if part in found:
                continue
            found[part] = []
            gid, name, state = part
            function = self._functions[gid]
            if "." in name:
                if self._off(gid, name, state):
                    found[part].append((-1, _NEVER, None))
                continue
            if name not in function.parameters:
                continue
            position = function.parameters.index(name) - bound_of(function)
            unusual = self._unusual(part)
            if not unusual and self._unresolved.may_pass(self._files[gid], function, name, position):
                self._open.add(part)
                continue
            default = dict(function.defaults).get(name, "")
            dead: Edge | None = _NEVER if unusual else None
            for node, edge in self._calls_of(gid):
                if edge.guard & GUARD_SKIP:
                    continue
                code = self._code(node, edge, function, name, position, default)
                needed = needed_for(state, code)
                if needed is not None and self._off(node, *needed):
                    dead = edge
                    continue
                if ruled_out(state, code) or (code[:1] == "$" and self._off(node, code[1:], state)):
                    dead = edge
                    continue
                own = passed_on(state, code)
                above = None if own is None else (node, own, state)
                if above is not None:
                    pending.append(above)
                found[part].append((node, edge, above))
            if dead is not None:
                found[part].append((-1, dead, None))
        return found

    def _unusual(self, part: Part) -> bool:
        """Whether nobody outside calls a function so: a model's forward without what it needs, a private parameter."""
        gid, name, state = part
        if name[:1] == "_":
            return state in ("given", "true")
        return (name, state) in _UNUSUAL and self._model(gid)

    def _left_off(self, sites: dict[Part, list[tuple[int, Edge, Part | None]]]) -> set[Part]:
        """The parts below a choice that is not the default one, which no call in the project makes, nor hands on from
        above where it may be made. Of a function that nothing calls nobody can tell, but what it hands on is off."""
        known: dict[Part, bool] = {}

        def left(part: Part) -> bool:
            if part not in known:
                known[part] = True  # calls in a circle switch nothing on
                known[part] = self._optional(part) and all(
                    node < 0 or (above is not None and left(above)) for node, _, above in sites[part]
                )
            return known[part]

        found: set[Part] = set()
        pending = [part for part, calls in sites.items() if calls and left(part)]
        while pending:
            part = pending.pop()
            if part not in found:
                found.add(part)
                pending.extend(above for _, _, above in sites[part] if above is not None)
        return found

    def _optional(self, part: Part) -> bool:
        """Whether a parameter chooses a way by a word, and another by its default. What may be given or not is part of
        the input, numbers are sizes, and what callers may switch on they mostly do somewhere."""
        gid, name, state = part
        if state[:2] not in ("==", "!=") or state[2:3] not in ("'", '"') or "." in name or part in self._open:
            return False
        return ruled_out(state, dict(self._functions[gid].defaults).get(name, ""))

    def _calls_of(self, gid: int) -> Iterable[tuple[int, Edge]]:
        count = len(self._functions)
        for node, edge in self._callers.get(gid, ()):
            if node < count or len(self._edges[node]) > _MANY:
                yield node, edge
            else:
                yield from self._callers.get(node, ())

    def _code(self, node: int, edge: Edge, function: FunctionFact, name: str, position: int, default: str) -> str:
        if node >= len(self._functions) or edge.guard & GUARD_REFERENCE:
            return ""
        if edge.call < 0:
            return default
        call = self._functions[node].calls[edge.call]
        if unbound(call.callee, function):
            return ""
        code = passed_for(call.passed, name, position)
        if code == HANDED_ON:  # nobody in the project gives it that name
            return "" if name in self._given() else default
        return default if code is None else code

    def _given(self) -> set[str]:
        """The names by which any call in the project passes something."""
        if self._by_name is None:
            passed = {call.passed for function in self._functions for call in function.calls}
            self._by_name = {code.partition("=")[0] for codes in passed for code in codes if "=" in code[1:]}
        return self._by_name

    @staticmethod
    def _divided(sites: dict[Part, list[tuple[int, Edge, Part | None]]]) -> set[Part]:
        """The parts that some call rules out, here or further up."""
        below: dict[Part, list[Part]] = {}
        pending = []
        for part, found in sites.items():
            for node, _, above in found:
                if node < 0:
                    pending.append(part)
                elif above is not None:
                    below.setdefault(above, []).append(part)
        divided: set[Part] = set()
        while pending:
            part = pending.pop()
            if part not in divided:
                divided.add(part)
                pending.extend(below.get(part, ()))
        return divided

    def _hang_over(self) -> None:
        for gid in self.of_function:
            kept: list[Edge] = []
            for edge in self._edges[gid]:
                node = self._holder(gid, edge)
                (kept if node == gid else self._edges[node]).append(edge)
            self._edges[gid] = kept

    def _holder(self, gid: int, edge: Edge) -> int:
        """The node that a function's call hangs on."""
        if gid in self.of_function and edge.call >= 0:
            found = [self.nodes.get((gid, *state)) for state in self._functions[gid].calls[edge.call].when]
            nodes = [node for node in found if node is not None]
            if nodes:
                return min(nodes, key=lambda node: node not in self.shut)
        return gid

    def _lead_there(self, sites: dict[Part, list[tuple[int, Edge, Part | None]]]) -> None:
        count = len(self._functions)
        for part, node in self.nodes.items():
            callers = self.callers[node] = []
            for source, edge, above in sites[part]:
                if source < 0:
                    continue
                holder = self.nodes.get(above, -1) if above is not None else -1
                if holder < 0:
                    holder = self._holder(source, edge) if source < count else source
                self._edges[holder].append(edge._replace(target=node))
                if holder not in self.shut:
                    callers.append(source)


def bound_of(function: FunctionFact) -> int:
    """How many of the parameters a call through an instance or class gives by itself."""
    return 1 if function.cls >= 0 and function.binding != "static" else 0


def unbound(callee: Ref, function: FunctionFact) -> bool:
    """``Base.forward(self, x)``."""
    if function.cls < 0 or function.binding != "" or not isinstance(callee, str):
        return False
    owner, _, name = callee.rpartition(".")
    return name == function.qualname.rpartition(".")[2] and owner.rpartition(".")[2][:1].isupper()
