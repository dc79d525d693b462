"""Modes that somebody sets for a block, or that an engine sets for the whole model."""

from __future__ import annotations

import ast

from awp_lint.rules.worth.table import Case, doubt


@doubt("AWP703")
def opens_a_block(case: Case) -> bool:
    """A context manager: who opens it wants what it sets, for the time of a block."""
    decorators = getattr(case.view.node, "decorator_list", ())
    return any(ast.unparse(decorator).endswith("contextmanager") for decorator in decorators)


@doubt("AWP702")
def loads_weights(case: Case) -> bool:
    """Engines put the whole model into that mode once its weights are there."""
    return case.view.qualname.endswith(".load_weights")


DOUBTS = (opens_a_block, loads_weights)
