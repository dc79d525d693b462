"""Lists of flags, one for each layer, that a constructor fills from a parameter.

``self.windowed = [False] * depth`` and ``for i in blocks: self.windowed[i] = True``: where ``blocks`` is empty, no
layer is made with ``windowed=self.windowed[i]`` true.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.semantics.conditions import held

_LOOPS = (ast.For, ast.AsyncFor)


def filled_from(node: ast.expr, holder: ast.AST) -> str | None:
    """The parameter of the function ``holder`` without which an item of a list of flags, ``self.x[i]``, is never true;
    None where there is no such parameter, or anything else may fill the list."""
    if not (isinstance(node, ast.Subscript) and isinstance(holder, (ast.FunctionDef, ast.AsyncFunctionDef))):
        return None
    kept = ast.dump(node.value)
    if not isinstance(node.value, (ast.Attribute, ast.Name)):
        return None
    makers: list[frozenset[str] | None] = []
    for value, needed in _stores(holder.body, kept, frozenset()):
        makers.append(None if value is not None and _all_false(value) else needed)
    if None not in makers or _changed_otherwise(holder, kept):
        return None
    wanted = [needed for needed in makers if needed is not None]
    common = frozenset.intersection(*wanted) if wanted else frozenset()
    parameters = {a.arg for a in (*holder.args.posonlyargs, *holder.args.args, *holder.args.kwonlyargs)}
    common &= parameters - _bound(holder)
    return min(common, default=None)


def _stores(
    body: list[ast.stmt], kept: str, needed: frozenset[str]
) -> Iterator[tuple[ast.expr | None, frozenset[str]]]:
    """What the list is bound to, None for its items, with the names that have to be true for that."""
    for statement in body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if _same(target, kept):
                    yield (None if isinstance(statement, ast.AugAssign) else statement.value), needed
                elif isinstance(target, ast.Subscript) and _same(target.value, kept):
                    yield None, needed
                elif isinstance(target, (ast.Tuple, ast.List)) and any(_same(part, kept) for part in target.elts):
                    yield None, frozenset()
            continue
        inside = needed
        if isinstance(statement, _LOOPS):
            inside = needed | _turned(statement.iter)
        for name, block in ast.iter_fields(statement):
            if not (isinstance(block, list) and block and isinstance(block[0], ast.stmt)):
                continue
            if isinstance(statement, ast.If):
                states = held(statement.test, name == "body")
                inside = needed | {asked for asked, state in states if state == "true"}
            yield from _stores(block, kept, inside)
        for handler in getattr(statement, "handlers", ()):
            yield from _stores(handler.body, kept, needed)


def _turned(node: ast.expr) -> frozenset[str]:
    """The name that has to hold something for a loop over it to make a turn, ``enumerate`` of it included."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "enumerate" and node.args:
        node = node.args[0]
    return frozenset((node.id,)) if isinstance(node, ast.Name) else frozenset()


def _same(node: ast.expr, kept: str) -> bool:
    return ast.dump(node).replace("Store()", "Load()") == kept


def _all_false(value: ast.expr) -> bool:
    """``[False] * depth``, ``[False for _ in range(depth)]``."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return any(isinstance(side, ast.List) and _all_false(side) for side in (value.left, value.right))
    if isinstance(value, ast.ListComp):
        return isinstance(value.elt, ast.Constant) and value.elt.value is False
    return isinstance(value, ast.List) and all(isinstance(e, ast.Constant) and e.value is False for e in value.elts)


def _changed_otherwise(holder: ast.AST, kept: str) -> bool:
    """Whether a method of the list is called, or the list is handed to something."""
    for part in ast.walk(holder):
        if isinstance(part, ast.Call):
            func = part.func
            if isinstance(func, ast.Attribute) and ast.dump(func.value) == kept:
                return True
            if any(ast.dump(given) == kept for given in part.args) and getattr(func, "id", "") not in (
                "sum",
                "len",
                "any",
            ):
                return True
    return False


def _bound(holder: ast.AST) -> set[str]:
    """The names that a function binds anew."""
    return {part.id for part in ast.walk(holder) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
