"""Copies that happen once, that a request cannot do without, or that are the purpose of the code."""

from __future__ import annotations

import ast
import re

from awp_lint.rules.common import ancestors
from awp_lint.rules.worth.source import behind
from awp_lint.rules.worth.table import Case, doubt

#: What a request brings along itself: it has to be copied to the device once.
_OWN_INPUT = re.compile(r"(\w+_)?pixel_values(_\w+)?|(concat_|raw_|input_)?(images|audios|videos|waveforms)")
#: Files and classes whose purpose is that weights leave the device: what moves and what is flushed is asked for.
_OFFLOADS = re.compile(r"offload|residency|onload")


@doubt("AWP60[2346]")
def stays_moved(case: Case) -> bool:
    """``self.table = self.table.to(device)``: a copy on the first call alone, later ones find nothing to do."""
    statement = case.node if isinstance(case.node, ast.stmt) else case.view.statement(case.node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    if not isinstance(target, ast.Attribute):
        return False
    name = ast.unparse(target)
    return any(isinstance(part, ast.Attribute) and ast.unparse(part) == name for part in ast.walk(statement.value))


@doubt("AWP60[56]")
def offload(case: Case) -> bool:
    """Code that moves weights between host and device by plan."""
    if _OFFLOADS.search(case.view.path) or _OFFLOADS.search(case.view.qualname.lower()):
        return True
    return any(
        isinstance(parent, ast.If) and _OFFLOADS.search(ast.unparse(parent.test))
        for parent in ancestors(case.view, case.node)
    )


@doubt("AWP601")
def own_input(case: Case) -> bool:
    """What a request brings along itself: it has to be copied to the device once."""
    return any(map(_OWN_INPUT.fullmatch, behind(case.node, case.view)))


DOUBTS = (stays_moved, offload, own_input)
