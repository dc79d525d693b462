"""Recognising attention that is written out: scores by a product, softmax, weights by another product.

The walk starts at the softmax. Backwards it follows the scores through scaling, masks and casts to the product of
queries and keys; forwards it follows the weights through casts and dropout to the product with the values. Every step
on the way is kept with what it means, so that a rule can say whether the whole is understood.
"""

from __future__ import annotations

import ast
import enum
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import ancestors, argument, callee, method

_STEP_LIMIT = 24


class What(enum.Enum):
    """What a step between the two products does."""

    SCALE = "scale"  # times `value`
    DIVIDE = "divide"  # by `value`
    ADD = "add"  # plus `value`: a mask or a bias
    FILL = "fill"  # `value` filled where `mask` is true
    KEEP = "keep"  # `value` filled where `mask` is false
    CAST = "cast"
    DROPOUT = "dropout"
    OTHER = "other"  # not understood: softcap, sinks, head masks, reshapes, …


@dataclass(frozen=True, slots=True)
class Step:
    """One step. ``conditional`` steps stand under an ``if`` that does not hold the products."""

    what: What
    node: ast.AST
    value: ast.expr | None = None
    mask: ast.expr | None = None
    conditional: bool = False


@dataclass(slots=True)
class Attention:
    """The whole pattern. ``scores`` and ``output`` are the two products, ``names`` the locals in between."""

    softmax: ast.Call
    scores: ast.expr
    query: ast.expr
    key: ast.expr
    key_transposed: bool  # the key's last two dimensions are swapped in the product itself
    output: ast.expr
    value: ast.expr
    before: list[Step] = field(default_factory=list)  # from the first product to the softmax
    after: list[Step] = field(default_factory=list)  # from the softmax to the second product
    names: set[str] = field(default_factory=set)
    statements: list[ast.stmt] = field(default_factory=list)  # all that the pattern is made of, in order
    weights_kept: bool = False  # the weights are used for something else too
    weights_needed: bool = False  # and not only handed out to whoever asks for them: something is computed of them


def find_attention(softmax: ast.Call, view: FunctionView) -> Attention | None:
    """The attention that a softmax is the middle of, None where there is none in this definition."""
    source = softmax_input(softmax, view)
    if source is None:
        return None
    backward = _Backward(view)
    scores = backward.follow(source, softmax, 0)
    if scores is None:
        return None
    query, key, transposed = backward.operands(scores)
    forward = _Forward(view)
    found = forward.follow(softmax, 0)
    if found is None:
        return None
    output, value = found
    attention = Attention(
        softmax=softmax,
        scores=scores,
        query=query,
        key=key,
        key_transposed=transposed,
        output=output,
        value=value,
        before=[*backward.scale_steps, *reversed(backward.steps)],
        after=forward.steps,
        names=backward.names | forward.names,
        weights_kept=forward.kept,
        weights_needed=forward.needed,
    )
    statements = {view.statement(n) for n in (scores, softmax, output)}
    statements |= {view.statement(step.node) for step in (*attention.before, *attention.after)}
    statements |= set(backward.statements) | set(forward.statements)
    attention.statements = sorted(statements, key=lambda s: (s.lineno, s.col_offset))
    return attention


def scores_of(node: ast.expr, at: ast.AST, view: FunctionView) -> ast.expr | None:
    """The product of queries and swapped keys that a value is, through scaling, masks, casts and local names, where
    that product is meant to be weighed by somebody else: None for other products."""
    backward = _Backward(view)
    found = backward.follow(node, at, 0)
    return found if found is not None and backward.operands(found)[2] else None


def applied_weights(node: ast.expr, view: FunctionView) -> ast.expr | None:
    """The matrix product that a value flows into, through casts, dropout and local names."""
    found = _Forward(view).follow(node, 0)
    return None if found is None else found[0]


def softmax_input(call: ast.Call, view: FunctionView) -> ast.expr | None:
    """What a softmax over the last dimension is taken of."""
    dotted = view.qualified(call.func) or ""
    if dotted in ("torch.softmax", "torch.nn.functional.softmax", "torch.special.softmax"):
        source, dim = argument(call, 0, "input"), argument(call, 1, "dim")
    elif not isinstance(call.func, ast.Attribute) or call.func.attr != "softmax":
        return None
    elif len(call.args) == 1 and not call.keywords and not _is_int(call.args[0]):
        source, dim = call.args[0], None  # a module: self.softmax(scores)
    else:
        source, dim = call.func.value, argument(call, 0, "dim")
    if dim is not None and _int(dim) not in (-1, 2, 3):
        return None
    return source


def _is_int(node: ast.expr) -> bool:
    return _int(node) is not None


def _int(node: ast.expr | None) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _int(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def product(node: ast.expr, view: FunctionView) -> tuple[ast.expr, ast.expr] | None:
    """The operands of a matrix product in any spelling."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right
    if not isinstance(node, ast.Call):
        return None
    name = callee(node)
    if name == "einsum":
        operands = node.args[1:]
        return (operands[0], operands[1]) if len(operands) == 2 else None
    if name in ("matmul", "bmm"):
        found = method(node)
        if found is not None and len(node.args) == 1 and not _is_module(found[0], view):
            return found[0], node.args[0]
        if len(node.args) == 2:
            return node.args[0], node.args[1]
    if name == "baddbmm" and len(node.args) >= 3 and _is_module(getattr(node.func, "value", node.func), view):
        return node.args[1], node.args[2]
    return None


def _is_module(node: ast.expr, view: FunctionView) -> bool:
    dotted = view.qualified(node)
    return dotted is not None and dotted.startswith("torch") and not dotted.startswith("torch.Tensor")


_CASTS = frozenset({"to", "float", "half", "bfloat16", "type_as", "type", "contiguous", "double"})
_FILLS = frozenset({"masked_fill", "masked_fill_"})
_OPERATORS: dict[type[ast.operator], What] = {ast.Mult: What.SCALE, ast.Div: What.DIVIDE, ast.Add: What.ADD}


def transposed_key(node: ast.expr, three: bool) -> ast.expr | None:
    """``k`` of ``k.transpose(-2, -1)``, ``k.mT``, ``k.permute(0, 1, 3, 2)``; None where nothing is swapped.

    ``three``: the key is known to have three dimensions.
    """
    if isinstance(node, ast.Attribute) and node.attr in ("mT", "mH"):
        return node.value
    if not isinstance(node, ast.Call):
        return None
    found = method(node)
    if found is None:
        return None
    receiver, name = found
    numbers = [_int(arg) for arg in node.args]
    if name in ("transpose", "swapaxes", "swapdims") and sorted(str(n) for n in numbers) in (
        ["-1", "-2"],
        ["1", "2"] if three else ["2", "3"],
    ):
        return receiver
    return receiver if name == "permute" and numbers in ([0, 1, 3, 2], [0, 2, 1]) else None


class _Backward:
    """From the softmax's input to the product of queries and keys."""

    def __init__(self, view: FunctionView) -> None:
        self.view = view
        self.steps: list[Step] = []  # newest first
        self.scale_steps: list[Step] = []  # those that the product itself holds (baddbmm)
        self.names: set[str] = set()
        self.statements: list[ast.stmt] = []
        self.conditional = False
        self.root: ast.stmt | None = None  # the statement of the softmax

    def operands(self, scores: ast.expr) -> tuple[ast.expr, ast.expr, bool]:
        pair = product(scores, self.view)
        assert pair is not None
        query, key = pair
        if isinstance(scores, ast.Call) and callee(scores) == "baddbmm":
            self._baddbmm(scores)
        if isinstance(scores, ast.Call) and callee(scores) == "einsum":
            return query, key, einsum_swaps(scores)
        three = isinstance(scores, ast.Call) and callee(scores) in ("bmm", "baddbmm")
        plain = transposed_key(key, three or self.view.value(key).rank == 3)
        return (query, plain, True) if plain is not None else (query, key, False)

    def _baddbmm(self, call: ast.Call) -> None:
        alpha, beta = argument(call, None, "alpha"), argument(call, None, "beta")
        if alpha is not None:
            self.scale_steps.append(Step(What.SCALE, call, alpha))
        if _int(beta) != 0:
            self.scale_steps.append(Step(What.ADD, call, call.args[0]))

    def follow(self, node: ast.expr, at: ast.AST, depth: int) -> ast.expr | None:
        """The product that a value comes from; ``at`` is where the value is used."""
        if depth > _STEP_LIMIT:
            return None
        if product(node, self.view) is not None:
            return node
        if isinstance(node, ast.Name):
            return self._name(node, at, depth)
        if isinstance(node, ast.BinOp):
            return self._operator(node, at, depth)
        if isinstance(node, ast.Call):
            return self._call(node, at, depth)
        if isinstance(node, ast.Subscript):
            self._step(What.OTHER, node)
            return self.follow(node.value, at, depth + 1)
        return None

    def _step(self, what: What, node: ast.AST, value: ast.expr | None = None, mask: ast.expr | None = None) -> None:
        self.steps.append(Step(what, node, value, mask, self.conditional))

    def _operator(self, node: ast.BinOp, at: ast.AST, depth: int) -> ast.expr | None:
        for chain, other in ((node.left, node.right), (node.right, node.left)):
            mark = len(self.steps)
            found = self.follow(chain, at, depth + 1)
            if found is None:
                del self.steps[mark:]
                continue
            what = _OPERATORS.get(type(node.op), What.OTHER)
            if what is What.DIVIDE and chain is node.right:
                what = What.OTHER
            self.steps.insert(mark, Step(what, node, other, None, self.conditional))
            return found
        return None

    def _call(self, node: ast.Call, at: ast.AST, depth: int) -> ast.expr | None:
        name = callee(node)
        found = method(node)
        receiver = found[0] if found is not None and not _is_module(found[0], self.view) else None
        args = list(node.args) if receiver is not None else node.args[1:]
        source = receiver if receiver is not None else (node.args[0] if node.args else None)
        if source is None:
            return None
        if name == "where" and receiver is None and len(node.args) == 3:
            condition, yes, no = node.args
            mark = len(self.steps)
            for chain, other, what in ((yes, no, What.KEEP), (no, yes, What.FILL)):
                result = self.follow(chain, at, depth + 1)
                if result is not None:
                    self.steps.insert(mark, Step(what, node, other, condition, self.conditional))
                    return result
                del self.steps[mark:]
            return None
        mark = len(self.steps)
        result = self.follow(source, at, depth + 1)
        if result is None:
            del self.steps[mark:]
            return None
        step = Step(What.OTHER, node, None, None, self.conditional)
        if name in _CASTS:
            step = Step(What.CAST, node, None, None, self.conditional)
        elif name in _FILLS and len(args) == 2:
            step = Step(What.FILL, node, args[1], args[0], self.conditional)
        elif name.rstrip("_") == "mul" and args:
            step = Step(What.SCALE, node, args[0], None, self.conditional)
        elif name.rstrip("_") == "div" and args:
            step = Step(What.DIVIDE, node, args[0], None, self.conditional)
        elif name.rstrip("_") == "add" and args:
            step = Step(What.ADD, node, args[0], None, self.conditional)
        self.steps.insert(mark, step)
        return result

    def _name(self, node: ast.Name, at: ast.AST, depth: int) -> ast.expr | None:
        """Through the bindings of a local name, from the latest before ``at`` backwards."""
        position = _start(at)
        here = self.view.statement(at)
        root = self.root = self.root or here
        outer_condition = self.conditional
        self.names.add(node.id)
        for statement in self._writes(node.id):
            if _start(statement) >= position or statement is here:
                continue
            self.conditional = _is_conditional(statement, root, self.view)
            self.statements.append(statement)
            if isinstance(statement, ast.AugAssign):
                what = _OPERATORS.get(type(statement.op), What.OTHER)
                self._step(what, statement, statement.value)
                continue
            if isinstance(statement, ast.Expr):
                self._in_place(statement)
                continue
            source = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
            result = self.follow(source, statement, depth + 1) if source is not None else None
            self.conditional = outer_condition
            if result is None:
                self.statements.pop()
            return result
        self.conditional = outer_condition
        return None

    def _writes(self, name: str) -> list[ast.stmt]:
        """Statements that bind the name or change it in place, latest first."""
        found: list[ast.stmt] = [
            s for s in self.view.assignments(name) if isinstance(s, ast.Assign | ast.AnnAssign | ast.AugAssign)
        ]
        for statement in self.view.nodes(ast.Expr):
            call = statement.value if isinstance(statement, ast.Expr) else None
            target = method(call) if isinstance(call, ast.Call) else None
            if target is not None and target[1].endswith("_") and getattr(target[0], "id", None) == name:
                assert isinstance(statement, ast.Expr)
                found.append(statement)
        return sorted(found, key=_start, reverse=True)

    def _in_place(self, statement: ast.Expr) -> None:
        call = statement.value
        assert isinstance(call, ast.Call)
        name = callee(call)
        if name == "masked_fill_" and len(call.args) == 2:
            self._step(What.FILL, statement, call.args[1], call.args[0])
        elif name in ("mul_", "div_", "add_") and call.args:
            what = {"mul_": What.SCALE, "div_": What.DIVIDE, "add_": What.ADD}[name]
            self._step(what, statement, call.args[0])
        else:
            self._step(What.OTHER, statement)


class _Forward:
    """From the softmax to the product with the values."""

    def __init__(self, view: FunctionView) -> None:
        self.view = view
        self.steps: list[Step] = []
        self.names: set[str] = set()
        self.statements: list[ast.stmt] = []
        self.kept = False
        self.needed = False

    def follow(self, node: ast.AST, depth: int) -> tuple[ast.expr, ast.expr] | None:
        """The product that a value flows into, and its other operand."""
        if depth > _STEP_LIMIT:
            return None
        parent = self.view.parent(node)
        if isinstance(parent, ast.Attribute) and parent.value is node:
            call = self.view.parent(parent)
            if isinstance(call, ast.Call) and call.func is parent:
                if parent.attr in ("matmul", "bmm") and len(call.args) == 1:
                    return call, call.args[0]
                self.steps.append(Step(What.CAST if parent.attr in _CASTS else What.OTHER, call))
                return self.follow(call, depth + 1)
            return None
        if isinstance(parent, ast.Call) and any(arg is node for arg in parent.args):
            return self._argument(parent, node, depth)
        if isinstance(parent, ast.keyword):
            call = self.view.parent(parent)
            return self._argument(call, node, depth) if isinstance(call, ast.Call) else None
        if isinstance(parent, ast.BinOp):
            if isinstance(parent.op, ast.MatMult):
                return (parent, parent.right if parent.left is node else parent.left)
            self.steps.append(Step(What.OTHER, parent))
            return self.follow(parent, depth + 1)
        if isinstance(parent, ast.Subscript) and parent.value is node:
            self.steps.append(Step(What.OTHER, parent))
            return self.follow(parent, depth + 1)
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
            self.statements.append(parent)
            return self._uses(parent.targets[0].id, parent, depth)
        return None

    def _argument(self, call: ast.Call, node: ast.AST, depth: int) -> tuple[ast.expr, ast.expr] | None:
        pair = product(call, self.view)
        if pair is not None and any(part is node for part in pair):
            return call, pair[1] if pair[0] is node else pair[0]
        if "drop" in callee(call).lower():
            self.steps.append(Step(What.DROPOUT, call))
            return self.follow(call, depth + 1)
        if callee(call) in ("nan_to_num",):
            self.steps.append(Step(What.OTHER, call))
            return self.follow(call, depth + 1)
        return None

    def _uses(self, name: str, bound: ast.stmt, depth: int) -> tuple[ast.expr, ast.expr] | None:
        self.names.add(name)
        found: tuple[ast.expr, ast.expr] | None = None
        end = _stop(bound)
        rebound = next(
            (s for s in self.view.assignments(name) if _start(s) >= end and not _is_conditional(s, bound, self.view)),
            None,
        )
        for use in self.view.uses(name):
            if _start(use) < end or self.view.parent(use) is None:
                continue
            if rebound is not None and _start(use) >= _stop(rebound):
                break  # another value of that name
            if found is not None:
                self.kept = True
                same = _Forward(self.view).follow(use, depth + 1) if not self.needed else None
                if same is None or same[0] is not found[0]:
                    self.needed = self.needed or _computes_with(use, self.view)
                continue
            mark, statements = len(self.steps), len(self.statements)
            found = self.follow(use, depth + 1)
            if found is None:
                del self.steps[mark:]
                del self.statements[statements:]
                if not isinstance(self.view.parent(use), ast.Attribute):
                    self.kept = True  # shape and dtype questions keep nothing
                self.needed = self.needed or _computes_with(use, self.view)
        return found


#: Options that ask for the weights, and methods that only look at them in another form.
_ASKED_FOR = re.compile(r"output_att|return_att|need_weights|return_weights|output_weights|with_att")
_LOOKS = frozenset({"view", "reshape", "detach", "cpu", "float", "to", "type_as", "transpose", "mean", "contiguous"})
_FACTS = frozenset({"shape", "size", "dim", "ndim", "dtype", "device", "is_cuda", "numel", "requires_grad"})


def _computes_with(use: ast.AST, view: FunctionView) -> bool:
    """Whether a use of the weights computes something of them or stores them, whether or not somebody asked for them.

    Handing them out (`return out, weights`), also in another form or averaged over the heads, is no such use.
    """
    child = use
    verdict: bool | None = None
    for parent in ancestors(view, use):
        if isinstance(parent, ast.If | ast.IfExp) and _ASKED_FOR.search(ast.unparse(parent.test)):
            return False
        if verdict is None:
            verdict = _verdict(parent, child)
        child = parent
    return bool(verdict)


def _verdict(parent: ast.AST, child: ast.AST) -> bool | None:
    """What one enclosing node says of the use below it; None where a further one decides."""
    if isinstance(parent, ast.Attribute):
        return None if parent.attr in _LOOKS else parent.attr not in _FACTS
    if isinstance(parent, ast.Call):
        return None if child is parent.func else True
    if isinstance(parent, ast.BinOp | ast.AugAssign):
        return True
    if isinstance(parent, ast.Assign):
        return any(isinstance(target, ast.Subscript | ast.Attribute) for target in parent.targets)
    if isinstance(parent, ast.stmt | ast.Compare):
        return False
    return None


def einsum_swaps(call: ast.Call) -> bool:
    """Whether an einsum is a plain product of queries with swapped keys: ``bhqd,bhkd->bhqk``."""
    pattern = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    if not isinstance(pattern, str):
        return False
    text = pattern.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    parts = inputs.split(",")
    if not arrow or len(parts) != 2 or not parts[0] or not parts[1]:
        return False
    q, k = parts
    return len(q) == len(k) >= 3 and q[:-2] == k[:-2] and q[-1] == k[-1] and q[-2] != k[-2] and output == q[:-1] + k[-2]


def einsum_applies(call: ast.Call) -> bool:
    """Whether an einsum is a plain product of weights with values: ``bhqk,bhkd->bhqd``."""
    pattern = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    if not isinstance(pattern, str):
        return False
    inputs, arrow, output = pattern.replace(" ", "").partition("->")
    parts = inputs.split(",")
    if not arrow or len(parts) != 2:
        return False
    w, v = parts
    return len(w) == len(v) >= 3 and w[:-2] == v[:-2] and w[-1] == v[-2] and output == w[:-1] + v[-1]


def _start(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _stop(node: ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _is_conditional(statement: ast.stmt, here: ast.stmt, view: FunctionView) -> bool:
    """Whether a statement stands under a branch that does not hold the other one."""
    around = set(_branches(here, view))
    return any(branch not in around for branch in _branches(statement, view))


def _branches(statement: ast.stmt, view: FunctionView) -> Iterator[tuple[ast.AST, str]]:
    child: ast.AST = statement
    parent = view.parent(child)
    while parent is not None:
        if isinstance(parent, ast.If | ast.Try | ast.For | ast.While):
            for name in ("body", "orelse", "handlers", "finalbody"):
                block: Sequence[ast.AST] = getattr(parent, name, [])
                if any(child is s for s in block):
                    yield parent, name
        child, parent = parent, view.parent(parent)
