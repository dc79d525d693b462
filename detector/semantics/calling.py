"""The facts of one call: what is called, what is handed on to it, what it puts into containers and attributes."""

from __future__ import annotations

import ast
import re

from awp_lint.detector.semantics import conditions, flaglists
from awp_lint.detector.semantics.binding import Binding
from awp_lint.detector.semantics.drafts import FunctionDraft
from awp_lint.detector.semantics.facts import GUARD_LAST, GUARD_REFERENCE, GUARD_START, SELF, UNKNOWN, CallFact
from awp_lint.detector.semantics.stopwords import BUILTINS, METHODS
from awp_lint.detector.semantics.view import LoopKind

_STARTERS = frozenset(
    ("Thread", "Process", "submit", "run_in_executor", "to_thread", "create_task", "run_in_threadpool")
)
#: Solvers of differential equations, which ask what they are given for every step that they take.
_SOLVERS = frozenset(("odeint", "odeint_adjoint", "odeint_event", "sdeint", "solve_ivp"))
#: Builtins that ask something of a class or a function and never call it.
_ASKERS = frozenset(("isinstance", "issubclass", "hasattr", "callable", "id", "repr", "print"))


#: What holds what was saved of an object.
_STATE = re.compile(r"(\w+_)?(state(_dict)?|checkpoint|ckpt|saved)")


class Calling(Binding):
    """Records calls."""

    def call(self, node: ast.Call, f: FunctionDraft, loops: tuple[str, ...], guard: int) -> None:
        func = node.func
        attribute = func.attr if type(func) is ast.Attribute else ""
        own = attribute not in METHODS or self.is_own(node, f)
        if attribute:
            if attribute in ("append", "add", "insert", "extend") and node.args and not self.of_self(func, f):
                item = self.ref(node.args[-1], f)
                if item != UNKNOWN:
                    self.grow(func.value, item, f)  # type: ignore[attr-defined]
            elif attribute in ("update", "setdefault"):
                if type(func.value) is ast.Name and func.value.id == f.rest:  # type: ignore[attr-defined]
                    f.rest = ""
            elif attribute in ("register_modules", "add_module", "register_module"):
                self.registered(node, f)
        if own:
            callee = self.ref(func, f)
            if callee != UNKNOWN or attribute:
                passed = self.passed(node, f)
                if callee == UNKNOWN:  # what a library defines is no method of the project, whatever its name
                    method = attribute
                    if self.of_library(func.value, f):  # type: ignore[attr-defined]
                        method = ""
                        passed = passed if attribute[:1].islower() else ()  # `nn.Linear(…)` is given its own
                    callee = self.intern((".", UNKNOWN, method))
                last = GUARD_LAST if f.cut and (node.lineno, node.col_offset) in f.cut else 0
                f.add(CallFact(node.lineno, node.col_offset, callee, loops, guard | last, passed))
        name = attribute or (func.id if type(func) is ast.Name else "")
        if name in _ASKERS:
            return
        start = GUARD_START if name in _STARTERS else 0
        if name in _SOLVERS:
            loops = (*loops, LoopKind.STEPS.value)
        for arg in node.args:
            self.reference(arg, f, loops, guard | start)
        for keyword in node.keywords:
            self.reference(keyword.value, f, loops, guard | start)

    @staticmethod
    def is_own(node: ast.Call, f: FunctionDraft) -> bool:
        """Whether a method with a name of tensors, lists and the like is one of the project: it is called on ``self``,
        or takes more than lists do, as caches of keys and values."""
        func = node.func
        assert isinstance(func, ast.Attribute)
        return Calling.of_self(func, f) or (
            func.attr in ("append", "extend") and len(node.args) + len(node.keywords) > 1
        )

    @staticmethod
    def of_self(node: ast.expr, f: FunctionDraft) -> bool:
        """``self.name``"""
        return type(node) is ast.Attribute and type(node.value) is ast.Name and f.env.get(node.value.id) == SELF

    def passed(self, node: ast.Call, f: FunctionDraft) -> tuple[str, ...]:
        """The codes of what a call passes."""
        if not node.args and not node.keywords:
            return ()
        found = [self.code(arg, f) for arg in node.args]
        for keyword in node.keywords:
            found.append(
                self.unpacked(keyword.value, f)
                if keyword.arg is None
                else f"{keyword.arg}={self.code(keyword.value, f) or self.saved(keyword.arg, keyword.value)}"
            )
        codes = tuple(found)
        return self.interned.setdefault(codes, codes)  # type: ignore[return-value]

    @staticmethod
    def saved(name: str, arg: ast.expr) -> str:
        """The code of ``state["name"]`` and ``state.get("name")``, passed by the same name."""
        if type(arg) is ast.Subscript:
            holder, key = arg.value, arg.slice
        elif type(arg) is ast.Call and type(arg.func) is ast.Attribute and arg.func.attr == "get" and arg.args:
            holder, key = arg.func.value, arg.args[0]
        else:
            return ""
        if type(key) is not ast.Constant or key.value != name or type(holder) is not ast.Name:
            return ""
        return conditions.SAVED if _STATE.fullmatch(holder.id) else ""

    @staticmethod
    def unpacked(arg: ast.expr, f: FunctionDraft) -> str:
        """``**kwargs``: the caller's own, which it was given and never touched, or any."""
        own = type(arg) is ast.Name and arg.id == f.rest and arg.id not in f.stored
        return conditions.HANDED_ON if own else "**"

    @staticmethod
    def code(arg: ast.expr, f: FunctionDraft) -> str:
        kind = type(arg)
        if kind is ast.Name:
            name: str = arg.id  # type: ignore[attr-defined]
            if name not in f.parameters:
                if name in f.solid and name not in f.vague:
                    return "const"
                needed = f.flags.get(name)
                return "" if needed is None else conditions.given_by(needed)
            if name in f.stored:
                return "const" if name in f.filled else ""
            return f"~{name}" if name in f.replaced else f"={name}"
        if kind is ast.Starred:
            return "*"
        if kind is ast.IfExp:  # ``part if self.often else None``
            if conditions.code_of(arg.orelse) != "None":  # type: ignore[attr-defined]
                return ""
            code = Calling.code(arg.body, f)  # type: ignore[attr-defined]
            if code[:1] == conditions.GIVEN:
                return code
            needed = next((s for s in conditions.held(arg.test, True) if "." in s[0] and f.keeps(s[0])), None)  # type: ignore[attr-defined]
            return "" if needed is None else conditions.given_by(needed)
        if kind is ast.Subscript and f.node is not None and f.qualname.endswith(".__init__"):
            parameter = flaglists.filled_from(arg, f.node)
            return "" if parameter is None else conditions.given_by((parameter, "true"))
        return "" if kind is ast.Call else conditions.code_of(arg)

    def reference(self, arg: ast.expr, f: FunctionDraft, loops: tuple[str, ...], guard: int) -> None:
        """A function handed on as an argument may be called there."""
        if type(arg) is ast.Name:
            ref = f.env.get(arg.id)
            if ref is None:
                if arg.id in BUILTINS or self.is_library(arg.id) or (f.index and arg.id in f.env):
                    return
                ref = self.outer_name(arg.id, f)
            if isinstance(ref, tuple) and ref[0] != "f":
                return
        elif type(arg) is ast.Attribute and type(arg.value) is ast.Name and f.env.get(arg.value.id) == SELF:
            holder = self.class_of(f)
            self.asked.methods.add(arg.attr)
            if holder is None or not any(name == arg.attr for name, _ in holder.methods):
                return
            ref = self.intern((".", SELF, arg.attr))
        elif type(arg) is ast.Call and type(arg.func) in (ast.Name, ast.Attribute):
            name = arg.func.attr if isinstance(arg.func, ast.Attribute) else arg.func.id  # type: ignore[attr-defined]
            if name == "partial" and arg.args:
                self.reference(arg.args[0], f, loops, guard)
            return
        else:
            return
        if ref != UNKNOWN:
            f.add(CallFact(arg.lineno, arg.col_offset, ref, loops, guard | GUARD_REFERENCE))

    def registered(self, node: ast.Call, f: FunctionDraft) -> None:
        """``self.register_modules(unet=unet)``, ``self.add_module("x", X())`` set attributes."""
        holder = self.class_of(f)
        if holder is None:
            return
        for keyword in node.keywords:
            if keyword.arg is not None and (ref := self.ref(keyword.value, f)) != UNKNOWN:
                holder.attributes.append((keyword.arg, f.index, ref))
        if len(node.args) == 2 and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            ref = self.ref(node.args[1], f)
            if ref != UNKNOWN:
                holder.attributes.append((node.args[0].value, f.index, ref))
