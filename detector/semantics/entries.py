"""Entry points by convention: functions whose frequency their name, class or decorators tell.

Tables of what frameworks call, and how often. One line a fact.
"""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.definition import Definition
from awp_lint.detector.semantics.paths import SETUP, UNKNOWN
from awp_lint.detector.semantics.values import Certainty
from awp_lint.detector.semantics.view import Frequency, Level, Region

_REQUEST = (Level.REQUEST,)
_TOKEN = (Level.REQUEST, Level.TOKEN)
_STEP = (Level.REQUEST, Level.STEP)

#: (class name ends with, method) → path; the class or one of its bases has to match.
_CLASS_METHODS: tuple[tuple[str, str, tuple[Level, ...]], ...] = (
    ("LogitsProcessor", "__call__", _TOKEN),
    ("StoppingCriteria", "__call__", _TOKEN),
    ("SchedulerMixin", "step", _STEP),
    ("SchedulerMixin", "scale_model_input", _STEP),
    ("Pipeline", "__call__", _REQUEST),
    ("Module", "forward", _REQUEST),
)


def entry_frequency(definition: Definition, bases: frozenset[str], file_regions: Region) -> Frequency:
    """What convention says of a definition that no call graph has reached."""
    node = definition.node
    if file_regions & (Region.TEST | Region.TIMED):
        return UNKNOWN
    if isinstance(node, ast.Module):
        return SETUP
    if isinstance(node, ast.Lambda):
        return UNKNOWN
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Attribute) and target.attr in (
            "get",
            "post",
            "put",
            "route",
            "websocket",
            "api_route",
        ):
            return Frequency(_REQUEST, Certainty.PROVEN)
    if definition.cls is not None:
        for suffix, method, path in _CLASS_METHODS:
            if node.name == method and any(base.endswith(suffix) for base in bases):
                return Frequency(path, Certainty.ASSUMED)
    if node.name in ("generate", "predict", "infer", "do_POST", "do_GET", "handle"):
        return Frequency(_REQUEST, Certainty.ASSUMED)
    if node.name == "main":
        return SETUP
    return UNKNOWN
