"""Waits that are allowed, that somebody weighed, or that another wait pays for."""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.view import LoopKind
from awp_lint.rules.common import callee
from awp_lint.rules.told import wait_allowed, wait_weighed
from awp_lint.rules.worth.table import Case, doubt

#: What brings more than a number to the host.
_BRINGS = frozenset(("cpu", "tolist", "numpy"))


@doubt(r"AWP1\d+")
def allowed(case: Case) -> bool:
    """In a block whose owner allows it to wait: ``with gpu_sync_allowed():``."""
    return wait_allowed(case.node, case.view)


@doubt(r"AWP[16]\d+")
def weighed(case: Case) -> bool:
    """A comment says that the wait there was weighed and kept."""
    return wait_weighed(case.node, case.view, case.file)


@doubt("AWP10[18]")
def beside_a_read(case: Case) -> bool:
    """It says where something is put that the same statement brings to the host before.

    Once the device is idle, another number costs next to nothing.
    """
    statement = case.node if isinstance(case.node, ast.stmt) else case.view.statement(case.node)
    if not isinstance(statement, ast.Assign) or any(part is case.node for part in ast.walk(statement.value)):
        return False
    calls = (part for part in ast.walk(statement.value) if isinstance(part, ast.Call))
    return any(callee(call) in _BRINGS and isinstance(call.func, ast.Attribute) for call in calls)


@doubt("AWP102")
def early_exit(case: Case) -> bool:
    """It decides whether the rest of the layers runs, which is worth a wait."""
    loops = case.view.loops(case.node)
    if not loops or case.view.loop_kind(loops[0]) is not LoopKind.LAYERS:
        return False
    statement = case.node if isinstance(case.node, ast.stmt) else case.view.statement(case.node)
    return isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Break | ast.Return)


DOUBTS = (allowed, weighed, beside_a_read, early_exit)
