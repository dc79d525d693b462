"""What runs once, or in the first step only: set-up that is kept, memos, the prompt's pass, loops of one turn.

Decided by syntax and names, as the regions of :mod:`.regions` are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from awp_lint.detector.semantics.definition import descendants, is_none


def last_name(node: ast.expr) -> str | None:
    """``training`` of ``self.training``, ``is_tracing`` of ``torch.jit.is_tracing()``."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


#: Switches that set-up turns on: ``if not self.prepared_buffers: self._prepare_buffers()``.
_DONE = re.compile(
    r"_?(is_|has_|have_)?(\w+_)?(prepared|initiali[sz]ed|built|loaded|warmed|compiled|setup_done|ready)(_\w+)?"
)
#: Names of containers that keep what was made.
_KEEPS = re.compile(r"cache|memo|_table|registry", re.IGNORECASE)


def lazily_made(node: ast.If) -> bool:
    """``if self.x is None: self.x = …`` and its like: the branch makes state that lasts."""
    if _made_for_another(node) or _loaded_for_another(node) or _outgrown(node):
        return True
    names = _missing(node.test)
    if not names:
        return _fills_cache(node)
    for part in _parts(node.body):
        if isinstance(part, ast.Call) and last_name(part) == "register_buffer" and part.args:
            name = part.args[0]
            if isinstance(name, ast.Constant) and name.value in names:
                return True
        targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
        for target in targets:
            if isinstance(target, ast.Attribute) and target.attr in names:
                return True
            if isinstance(target, ast.Name) and target.id in names and target.id.startswith("_"):
                return True
            if isinstance(target, ast.Subscript) and _keeps(target.value):
                return True  # what a look-up did not find is put there
    return _does_set_up(node, names)


def _keeps(container: ast.expr) -> bool:
    """Whether a container is named as those that keep what was made, or as a module's own are."""
    name = last_name(container) or ""
    return _KEEPS.search(name) is not None or (name.isupper() and isinstance(container, ast.Name))


def _does_set_up(node: ast.If, names: set[str]) -> bool:
    """A method of the object's own is called since a switch says that it was not yet."""
    if not any(_DONE.fullmatch(name) for name in names):
        return False
    calls = (part.func for part in _parts(node.body) if isinstance(part, ast.Call))
    return any(isinstance(func, ast.Attribute) and last_name(func.value) == "self" for func in calls)


_MAKES = re.compile(r"_?(re)?(make|build|set|compute|extend|resize|init|create|grow|allocate|update)_?\w*")


def _outgrown(node: ast.If) -> bool:
    """``if length > self.table.size(0): self.make_table(length)``: made anew where it has become too small."""
    test = node.test.values[-1] if isinstance(node.test, ast.BoolOp) else node.test
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Gt, ast.Lt))):
        return False
    small = test.comparators[0] if isinstance(test.ops[0], ast.Gt) else test.left
    kept = {
        part.attr for part in descendants(small) if isinstance(part, ast.Attribute) and last_name(part.value) == "self"
    }
    if not kept:
        return False
    for part in _parts(node.body):
        if isinstance(part, ast.Attribute) and last_name(part.value) == "self":
            if isinstance(part.ctx, ast.Store) and part.attr in kept:
                return True
            if len(node.body) == 1 and _MAKES.fullmatch(part.attr):
                return True
    return False


def _made_for_another(node: ast.If) -> bool:
    """``if self.shape != shape: … self.shape = shape``: made anew where something changes, which it rarely does."""
    test = node.test
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        test = test.values[-1]
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.NotEq)):
        return False
    sides = test.left, test.comparators[0]
    for kept, new in (sides, sides[::-1]):
        if isinstance(kept, ast.Attribute) and not isinstance(new, ast.Constant):
            name, value = ast.dump(kept).replace("Load()", "Store()"), ast.dump(new)
            for part in _parts(node.body):
                if not (isinstance(part, ast.Assign) and ast.dump(part.value) == value):
                    continue
                if any(ast.dump(target).replace("Load()", "Store()") == name for target in part.targets):
                    return True
    return False


_LOADS = re.compile(r"_?(re)?(load|build|setup|set_up|switch)_?\w*")


def _loaded_for_another(node: ast.If) -> bool:
    """``if language != meta["language"]: model, meta = load_model(language)``: loaded anew where something changes."""
    test = node.test
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.NotEq)):
        return False
    asked = {
        part.value.id
        for side in (test.left, test.comparators[0])
        for part in descendants(side)
        if isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.value, ast.Name)
    }
    for statement in node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            bound = {part.id for target in statement.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            if asked & bound and _LOADS.fullmatch(last_name(statement.value) or ""):
                return True
    return False


def _fills_cache(node: ast.If) -> bool:
    """``if key not in _TABLES: … _TABLES[key] = …``: made once a key, in a container that lasts."""
    test = node.test
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.NotIn)):
        return False
    container = test.comparators[0]
    name = last_name(container)
    if name is None or isinstance(container, ast.Call):
        return False
    if not isinstance(container, ast.Attribute) and not (name.startswith("_") or "cache" in name.lower()):
        return False
    kept = ast.dump(container)
    return any(
        isinstance(target, ast.Subscript) and ast.dump(target.value) == kept
        for statement in node.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
    )


def made_and_left(statement: ast.stmt, body: list[ast.stmt]) -> bool:
    """Whether an earlier statement of the body leaves once what a later one makes is there: ``if self.x: return``."""
    at = body.index(statement)
    return any(leaves_when_made(earlier, body[index + 1 :]) for index, earlier in enumerate(body[:at]))


def leaves_when_made(node: ast.stmt, later: list[ast.stmt]) -> bool:
    """``if self.x is not None: return`` and ``if key in self._seen: return`` where what follows makes it so."""
    if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.If):
        return _same_as_last(node, later)
    if not (isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return) and not node.orelse):
        return False
    return any(_makes_it_so(node, part, later) for part in _either(node.test))


def _either(test: ast.expr) -> list[ast.expr]:
    """The parts of a test of which each is enough."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]


def _makes_it_so(node: ast.If, test: ast.expr, later: list[ast.stmt]) -> bool:
    """Whether what follows ``if test: return`` makes the test true."""
    assert isinstance(node.body[-1], ast.Return)
    if _found_in_cache(test, node.body[-1], later):
        return True
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        right = test.comparators[0]
        if isinstance(test.ops[0], ast.Is) and isinstance(test.left, ast.Name):
            return is_none(right) and _unset(test.left.id, later)
        if isinstance(test.ops[0], ast.In):
            return _lasts(right) and any(_puts_into(part, ast.dump(right)) for part in _parts(later))
        if isinstance(test.ops[0], ast.IsNot):
            if (kept_in := _kept_in(test.left)) is not None:
                return any(_puts_into(part, ast.dump(kept_in)) for part in _parts(later))
            test = test.left
    kept = (part for part in _parts(later) if isinstance(part, ast.Assign))
    if isinstance(test, ast.Name):  # read from an attribute above, put there below
        name = test.id
        return isinstance(_returned(node), ast.Name) and any(
            isinstance(part.value, ast.Name) and part.value.id == name and isinstance(part.targets[0], ast.Attribute)
            for part in kept
        )
    if not isinstance(test, ast.Attribute):
        return False
    return any(
        isinstance(target, ast.Attribute) and target.attr == test.attr for part in kept for target in part.targets
    ) or any(_filled(part) == ast.dump(test) for part in _parts(later) if isinstance(part, ast.Call))


def _filled(call: ast.Call) -> str:
    """What ``self.made.data.copy_(…)`` and ``self.made.fill_(…)`` fill."""
    func = call.func
    if not (isinstance(func, ast.Attribute) and func.attr in ("copy_", "fill_")):
        return ""
    filled = func.value
    if isinstance(filled, ast.Attribute) and filled.attr == "data":
        filled = filled.value
    return ast.dump(filled)


_CACHED = re.compile(r"(\w+_)?cached(_\w+)?")


def _found_in_cache(test: ast.expr, left: ast.Return, later: list[ast.stmt]) -> bool:
    """``if cached is not None: return cached`` and later ``self.mask_cache[key] = …``: whatever the look-up reads, what
    follows keeps something for the next one."""
    first = test.values[0] if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else test
    if not (
        isinstance(first, ast.Compare) and isinstance(first.ops[0], ast.IsNot) and isinstance(first.left, ast.Name)
    ):
        return False
    name = first.left.id
    if not (_CACHED.fullmatch(name) and left.value is not None and is_none(first.comparators[0])):
        return False
    if not any(isinstance(part, ast.Name) and part.id == name for part in descendants(left.value)):
        return False
    for part in _parts(later):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "setattr":
            return True
        for target in part.targets if isinstance(part, ast.Assign) else ():
            if isinstance(target, ast.Attribute) and _KEEPS.search(target.attr):
                return True
            if isinstance(target, ast.Subscript) and _keeps(target.value):
                return True
    return False


def _same_as_last(node: ast.If, later: list[ast.stmt]) -> bool:
    """``if _LAST is not None: … if key is the same: return …`` where ``_LAST`` is set later: once for all layers."""
    test, inner = node.test, node.body[-1]
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot) and isinstance(test.left, ast.Name)):
        return False
    if not (isinstance(inner, ast.If) and isinstance(inner.body[-1], ast.Return) and test.left.id.startswith("_")):
        return False
    return any(
        isinstance(target, ast.Name) and target.id == test.left.id
        for part in _parts(later)
        if isinstance(part, ast.Assign)
        for target in part.targets
    )


def _unset(name: str, later: list[ast.stmt]) -> bool:
    """Whether what follows takes back what lets it run: ``if _path is None: return … _path = None``."""
    bound = [s for s in later if isinstance(s, ast.Assign) and getattr(s.targets[0], "id", None) == name]
    return name.startswith("_") and bool(bound) and is_none(bound[-1].value)


def _returned(node: ast.If) -> ast.expr | None:
    last = node.body[-1]
    return last.value if isinstance(last, ast.Return) else None


def _parts(statements: list[ast.stmt]) -> Iterable[ast.AST]:
    return (part for statement in statements for part in descendants(statement))


def _lasts(container: ast.expr) -> bool:
    """Whether a container outlives the call: an attribute, or a name as those of a module's caches are."""
    if isinstance(container, ast.Name):
        return container.id.startswith("_") or "cache" in container.id.lower()
    return isinstance(container, ast.Attribute)


def _kept_in(found: ast.expr) -> ast.expr | None:
    """The container of ``(table := _TABLES.get(key)) is not None``, which was looked up there."""
    if not (isinstance(found, ast.NamedExpr) and isinstance(found.value, ast.Call)):
        return None
    func = found.value.func
    if isinstance(func, ast.Attribute) and func.attr == "get" and _lasts(func.value):
        return func.value
    return None


def _puts_into(part: ast.AST, container: str) -> bool:
    """``self.name.add(key)``, ``self.name[key] = …``; ``container`` is the dump of ``self.name``."""
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in ("add", "append"):
        return ast.dump(part.func.value) == container
    return isinstance(part, ast.Assign) and any(
        isinstance(target, ast.Subscript) and ast.dump(target.value) == container for target in part.targets
    )


#: Inputs that come with the first step of a request and not again.
_PROMPT_INPUTS = re.compile(
    r"(\w+_)?pixel_values(_\w+)?|(\w+_)?(images|videos|audios|audio_values|audio_features|speech)"
    r"|(\w+_)?input_(features|values)(_\w+)?"
    r"|(image|video|audio)_(embeds|embeddings|features|inputs|patches|sizes|grid_thw|input_ids|latents|outputs)"
    r"|(image|video|audio)_(hidden_states|prompt\w*)"
    r"|(image|video|audio|vision|visual)_(pos_)?masks?"
)
#: State that is missing in the first step only.
_STEP_STATE = re.compile(
    r"past_key_values?|past_key_value|(kv_)?caches?|encoder_outputs|_?(step|begin)_index|layer_past|rope_deltas"
)


def first_step(test: ast.expr, taken: bool) -> bool:
    """Whether a branch of ``if test:`` runs in the first step of a request only: the prompt's own inputs are there
    (``pixel_values is not None``), or the state that the first step makes is not (``past_key_values is None``)."""
    if isinstance(test, ast.BoolOp):
        decides = isinstance(test.op, ast.And) == taken
        found = [first_step(part, taken) for part in test.values]
        return any(found) if decides else all(found)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return first_step(test.operand, not taken)
    if isinstance(test, ast.Name):
        return test.id == "is_updated" and not taken  # cross-attention's keys and values are kept from then on
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
        return False
    right = test.comparators[0]
    if isinstance(right, ast.Constant) and right.value == 1 and _is_order(test.left):
        return isinstance(test.ops[0], ast.Eq) and taken  # a multistep solver warms up by a step of the first order
    if isinstance(right, ast.Constant) and right.value == 1 and _counts_positions(test.left):
        op = test.ops[0]
        return isinstance(op, (ast.NotEq, ast.Gt)) if taken else isinstance(op, (ast.Eq, ast.LtE))
    name = _looked_up(test.left) or last_name(test.left)
    if name is None or not is_none(right):
        return False
    if isinstance(test.ops[0], ast.IsNot):
        return bool(_PROMPT_INPUTS.fullmatch(name)) if taken else bool(_STEP_STATE.fullmatch(name))
    return bool(_STEP_STATE.fullmatch(name)) if taken else bool(_PROMPT_INPUTS.fullmatch(name))


def _is_order(node: ast.expr) -> bool:
    return last_name(node) in ("order", "this_order")


def _counts_positions(node: ast.expr) -> bool:
    """``input_ids.shape[1]``, ``input_shape[-1]``, ``q_len``: how many positions a model is given, one in all steps but
    the first."""
    if isinstance(node, ast.Subscript):
        axis, shape = node.slice, node.value
        if isinstance(shape, ast.Name) and shape.id in ("input_shape", "input_ids_shape"):
            return ast.unparse(axis) in ("1", "-1")
        if not (isinstance(shape, ast.Attribute) and shape.attr == "shape" and isinstance(axis, ast.Constant)):
            return False
        return axis.value == 1 and last_name(shape.value) in ("input_ids", "inputs_embeds")
    return isinstance(node, ast.Name) and node.id in ("q_len", "q_length", "query_length", "seq_len", "tgt_len")


def _looked_up(node: ast.expr) -> str | None:
    """``image_outputs`` of ``encoder_outputs.get("image")``."""
    if not (isinstance(node, ast.Call) and last_name(node) == "get" and node.args):
        return None
    key = node.args[0]
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value in ("image", "video", "audio"):
        return f"{key.value}_outputs"
    return None


def in_first_step(ancestors: Iterable[tuple[ast.AST, ast.AST]]) -> bool:
    """Whether a node stands in such a branch. ``ancestors`` are pairs (child, parent) outwards."""
    for child, parent in ancestors:
        if isinstance(parent, (ast.If, ast.IfExp)) and child is not parent.test:
            body = parent.body if isinstance(parent.body, list) else [parent.body]
            if first_step(parent.test, child in body):
                return True
        elif isinstance(parent, ast.BoolOp) and child in parent.values:
            taken = isinstance(parent.op, ast.And)
            if any(first_step(part, taken) for part in parent.values[: parent.values.index(child)]):
                return True
        elif isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and child in parent.body:
            return any(map(left_in_later_steps, parent.body[: parent.body.index(child)]))
    return False


def left_in_later_steps(node: ast.stmt) -> bool:
    """``if input_ids.shape[1] == 1: return``: what follows runs in the first step only."""
    return (
        isinstance(node, ast.If)
        and not node.orelse
        and isinstance(node.body[-1], ast.Return)
        and first_step(node.test, False)
    )


def made_once(ancestors: Iterable[tuple[ast.AST, ast.AST]]) -> bool:
    """Whether a node stands in a branch that makes lasting state. ``ancestors`` are pairs (child, parent) outwards."""
    inner: ast.AST | None = None
    for child, parent in ancestors:
        if inner is child and isinstance(child, ast.If) and _put_back(child, parent):
            return True
        if isinstance(parent, ast.If) and child in parent.body:
            if lazily_made(parent):
                return True
            inner = parent
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and isinstance(child, ast.stmt):
            return child in parent.body and made_and_left(child, parent.body)
    return False


def _put_back(node: ast.If, parent: ast.AST) -> bool:
    """``length = source._length`` and then ``if length is None: … source._length = length``."""
    names = _missing(node.test)
    made = {
        target.attr
        for part in node.body
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Name) and part.value.id in names
        for target in part.targets
        if isinstance(target, ast.Attribute)
    }
    if not made:
        return False
    blocks = (getattr(parent, field, None) for field in ("body", "orelse", "finalbody"))
    block: list[ast.stmt] = next((b for b in blocks if isinstance(b, list) and node in b), [])
    return any(_looked_up_in(earlier.value) in made for earlier in block if isinstance(earlier, ast.Assign))


def _looked_up_in(value: ast.expr) -> str | None:
    """``_length`` of ``source._length`` and of ``getattr(source, "_length", None)``."""
    if isinstance(value, ast.Attribute):
        return value.attr
    if isinstance(value, ast.Call) and last_name(value) == "getattr" and len(value.args) > 1:
        name = value.args[1]
        return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None
    return None


def _missing(test: ast.expr) -> set[str]:
    """Names of attributes that the test finds missing: ``self.x is None``, ``not hasattr(self, "x")``."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):  # … or too small, or on another device
        return set().union(*map(_missing, test.values))
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Is):
        left = test.left if is_none(test.comparators[0]) else None
        if isinstance(left, ast.Attribute):
            return {left.attr}
        if isinstance(left, ast.Name):
            return {left.id}
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        operand = test.operand
        if isinstance(operand, ast.Attribute):
            return {operand.attr}
        if isinstance(operand, ast.Call) and isinstance(operand.func, ast.Name) and operand.func.id == "hasattr":
            name = operand.args[1] if len(operand.args) == 2 else None
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                return {name.value}
    return set()


def turns_of_one(test: ast.expr) -> set[str]:
    """Names that a branch compares for equality: where one is a loop's index, the branch runs in one turn of it."""
    if isinstance(test, ast.BoolOp):
        return set().union(*map(turns_of_one, test.values)) if isinstance(test.op, ast.And) else set()
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        return {side.id for side in (test.left, test.comparators[0]) if isinstance(side, ast.Name)}
    return set()


def indices(loop: ast.AST) -> set[str]:
    """Names that count the turns of a ``for`` loop: ``i`` of ``enumerate(…)`` and of ``range(…)``."""
    call = getattr(loop, "iter", None)
    target = getattr(loop, "target", None)
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        return set()
    if call.func.id == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[0]
    elif call.func.id != "range":
        return set()
    return {target.id} if isinstance(target, ast.Name) else set()


def loop_of_one_turn(ancestors: Iterable[tuple[ast.AST, ast.AST]]) -> ast.AST | None:
    """The loop around a node in one turn of which it runs: ``if i == len(layers) - 1:``."""
    names: set[str] = set()
    for child, parent in ancestors:
        if isinstance(parent, ast.If) and child in parent.body:
            names |= turns_of_one(parent.test)
        elif names and isinstance(parent, (ast.For, ast.AsyncFor)) and names & indices(parent):
            return parent
    return None
