"""What can be mended below a step, and what cannot."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass

from awp_lint.detector.semantics.model import FunctionModel
from awp_lint.patches.steploop.project import Part


class RepairKind(enum.Enum):
    """What can be mended in the code below a step."""

    GUARD = "a check that raises is left to calls outside a graph"
    POSITIONS = "positions are counted on the device"
    OPEN_END = "the whole buffer is read, its end is left to the mask"
    SPAN = "a place in a buffer is found on the device"
    GROW = "keys and values are written into a buffer with room to spare"
    LENGTH = "the length of a cache is known on the device"
    ATTEND = "a mask hides what of the buffer is not filled"


@dataclass(frozen=True, slots=True)
class Repair:
    """One place to mend. ``view`` and ``part`` are where ``node`` stands."""

    kind: RepairKind
    node: ast.AST
    view: FunctionModel
    part: Part


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a step cannot be captured."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.text} ({self.path}:{self.line})"
