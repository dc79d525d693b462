"""Host data that reaches the device without a wait: filled there, kept there, or copied without waiting."""

from __future__ import annotations

import ast
import re

from awp_lint.detector.finding import Edit, Effect, Fix, Import, Safety
from awp_lint.detector.semantics.values import DTypeClass, Kind
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import assigned_name, callee, method, short
from awp_lint.rules.doubts import kept
from awp_lint.rules.edits import cached_function, fresh_name, insert_before, pure_chain
from awp_lint.rules.flow import binding
from awp_lint.rules.memory.factories import Move
from awp_lint.rules.nodemap import Definition, first_line

_LARGE = (Kind.TENSOR, Kind.NDARRAY)  # what may be large as an item of a list


def filled_there(made: ast.Call, data: ast.expr, moved: Move | None, definition: Definition) -> Fix | None:
    """``torch.tensor(number, device=…)`` → ``torch.full((), number, device=…)``: the device fills it itself."""
    view = definition.view
    single = isinstance(data, ast.List | ast.Tuple) and len(data.elts) == 1
    number = data.elts[0] if isinstance(data, ast.List | ast.Tuple) and single else data
    value = view.value(number)
    if value.kind is not Kind.SCALAR or value.dtype is DTypeClass.UNKNOWN:
        return None
    if callee(made) not in ("tensor", "as_tensor") or len(made.args) != 1:
        return None
    if any(k.arg not in ("device", "dtype") for k in made.keywords):
        return None
    parts = {k.arg: definition.text(k.value) for k in made.keywords}
    if moved is not None:
        if moved.device is None or moved.dtype is not None or "device" in parts:
            return None
        parts = {"device": definition.text(moved.device), **parts}
    shape = "(1,)" if single else "()"
    arguments = ", ".join([f"{shape}, {definition.text(number)}", *(f"{name}={code}" for name, code in parts.items())])
    return Fix(
        title=f"fill `{short(data, 30)}` on the device",
        safety=Safety.UNSAFE,
        edits=(definition.replace(_place(made, moved), f"{definition.torch_name('torch.full')}({arguments})"),),
        effects=(Effect.TIMING,),
        requires=(f"`{short(number, 30)}` is a Python number",),
    )


def kept_constant(made: ast.Call, moved: Move | None, definition: Definition) -> Fix | None:
    """A literal that is uploaded at every call: make it once for each device, in a function with a cache.

    The function holds the expression as it was, with the device (and a type that is no constant) as parameters.
    """
    place = _place(made, moved)
    if (moved is not None and moved.device is None) or len(made.args) != 1 or not _only_read(place, definition.view):
        return None
    passed: dict[str, ast.expr] = {}
    for keyword in [*made.keywords, *(moved.call.keywords if moved is not None else ())]:
        if keyword.arg in ("device", "dtype") and keyword.arg not in passed:
            passed[keyword.arg] = keyword.value
        elif keyword.arg not in ("non_blocking", "pin_memory") or not isinstance(keyword.value, ast.Constant):
            return None
    if moved is not None:
        positional = [("device", moved.device), ("dtype", moved.dtype)]
        for name, node in positional:
            if node is not None and passed.setdefault(name, node) is not node:
                return None
        if len(moved.call.args) > sum(node in moved.call.args for _, node in positional if node is not None):
            return None
    if "device" not in passed:
        return None
    if "dtype" in passed and (definition.view.qualified(passed["dtype"]) or "").startswith("torch."):
        del passed["dtype"]  # a constant
    code, shift = definition.text(place), definition.range(place)[0]
    for name, node in sorted(passed.items(), key=lambda item: -definition.range(item[1])[0]):
        start, end = definition.range(node)
        code = code[: start - shift] + name + code[end - shift :]
    name = fresh_name(
        f"_{(assigned_name(definition.view, place) or 'constant').lstrip('_')}_on", definition, definition.range(place)
    )
    names = sorted(passed)  # device before dtype
    made_once = cached_function(name, names, code, definition)
    if made_once is None or "\n" in code:
        return None
    values = ", ".join(definition.text(passed[n]) for n in names)
    return Fix(
        title=f"make `{short(made.args[0], 30)}` once for each device",
        safety=Safety.UNSAFE,
        edits=(
            made_once,
            definition.replace(place, f"{name}({values})"),
        ),
        imports=(Import("functools"),),
        effects=(Effect.MEMORY, Effect.ALIASING),
        requires=("nobody writes into the tensor, or needs gradients through it",),
    )


def kept_call(call: ast.Call, moved: Move, definition: Definition) -> Fix | None:
    """``table(size).to(device)`` of a function of the file that makes a tensor of numbers alone: keep the last ones, by
    size and device, in a function with a cache."""
    if moved.device is None or moved.dtype is not None or len(call.args) == 0 or call.keywords:
        return None
    view = definition.view
    if len(moved.call.args) != 1 or moved.call.keywords or not _only_read(moved.call, view):
        return None
    wanted = set(view.targets(call))
    made = [v for v in definition.file.functions() if f"{v.module}.{v.qualname}".lstrip(".") in wanted]
    if len(made) != 1 or len(wanted) != 1 or made[0].class_name is not None or _draws(made[0]):
        return None
    parameters: list[str] = []
    given: list[str] = []
    code: list[str] = []
    for arg in call.args:
        if isinstance(arg, ast.Constant) or (isinstance(arg, ast.Name) and arg.id.isupper()):
            code.append(definition.text(arg))
            continue
        if not _number(arg, view):
            return None
        parameters.append(f"size_{len(parameters) + 1}")
        given.append(definition.text(arg))
        code.append(parameters[-1])
    stem = (assigned_name(view, moved.call) or callee(call)).lstrip("_")
    name = fresh_name(f"_{stem}_on", definition, definition.range(moved.call))
    body = f"{definition.text(call.func)}({', '.join(code)}).to(device)"
    made_once = cached_function(name, [*parameters, "device"], body, definition, most=16)
    if made_once is None:
        return None
    values = ", ".join((*given, definition.text(moved.device)))
    return Fix(
        title=f"keep what `{short(call.func, 30)}` made for each size and device",
        safety=Safety.UNSAFE,
        edits=(made_once, definition.replace(moved.call, f"{name}({values})")),
        imports=(Import("functools"),),
        effects=(Effect.MEMORY, Effect.ALIASING),
        requires=("nobody writes into the tensor, or needs gradients through it",),
    )


def _number(node: ast.expr, view: FunctionView) -> bool:
    """A Python number, a string, or an attribute of a configuration."""
    value = view.value(node)
    if value.kind in (Kind.SCALAR, Kind.STRING):
        return True
    return isinstance(node, ast.Attribute) and view.value(node.value).kind is Kind.CONFIG


def _draws(view: FunctionView) -> bool:
    """Whether a function draws random numbers."""
    calls = [call for call in view.nodes(ast.Call) if isinstance(call, ast.Call)]
    return any("rand" in callee(call) or callee(call) in ("normal", "multinomial", "bernoulli") for call in calls)


def uploaded_ahead(made: ast.Call, moved: Move | None, definition: Definition) -> Fix | None:
    """``torch.tensor(data, device=…)`` of data that change: made on the host and copied without waiting.

    Not from pinned memory: up to a megabyte the driver takes a copy of pageable memory aside at once and does not wait
    for the device; to pin it first takes longer than the copy (`benchmarks/results/copies-h200.txt`).
    """
    if definition.file.target.device not in ("cuda", "rocm") or callee(made) != "tensor" or len(made.args) != 1:
        return None
    if any(k.arg not in ("device", "dtype") for k in made.keywords) or (moved is not None and moved.call.keywords):
        return None
    if moved is not None and (len(moved.call.args) != 1 or moved.device is None):
        return None
    device = moved.device if moved is not None else next((k.value for k in made.keywords if k.arg == "device"), None)
    data, place = definition.text(made.args[0]), _place(made, moved)
    if device is None or "\n" in definition.text(place):
        return None
    types = "".join(f", dtype={definition.text(k.value)}" for k in made.keywords if k.arg == "dtype")
    code = f"{definition.text(made.func)}({data}{types}).to({definition.text(device)}, non_blocking=True)"
    return Fix(
        title=f"copy `{short(made.args[0], 30)}` without waiting",
        safety=Safety.UNSAFE,
        edits=(definition.replace(place, code),),
        effects=(Effect.TIMING,),
        requires=(f"`{short(made.args[0], 30)}` holds Python numbers",),
    )


def _place(made: ast.Call, moved: Move | None) -> ast.Call:
    return moved.call if moved is not None else made


def sent_ahead(call: ast.Call, source: ast.expr, definition: Definition) -> Fix | None:
    """``x.to(device)`` of a host tensor → asynchronous, from pinned memory where it may be large.

    Pinned on machines that can pin and where it is one of the host. What is made of Python numbers is small: see
    :func:`uploaded_ahead`.
    """
    if definition.file.target.device not in ("cuda", "rocm"):
        return None
    found = method(call)
    if found is None or any(k.arg == "non_blocking" for k in call.keywords) or found[1] in ("copy_", "type_as"):
        return None
    cuda = definition.torch_name("torch.cuda")
    code = definition.text(source)
    if "\n" in code or not pure_chain(source):
        return None
    pinning = f"{code}.pin_memory() if {code}.is_cpu and {cuda}.is_available() else {code}"
    start, end = definition.range(source)
    text = definition.source.text
    close = definition.range(call)[1] - 1
    arguments = text[definition.range(call.func)[1] : close].strip()
    if text[close] != ")" or not arguments.startswith("("):
        return None
    comma = "" if arguments == "(" else " " if arguments.endswith(",") else ", "
    if "\n" in arguments:
        return None
    if _of_numbers(source, definition.view):
        return Fix(
            title=f"copy `{short(source, 30)}` without waiting",
            safety=Safety.UNSAFE,
            edits=(Edit(close, close, f"{comma}non_blocking=True"),),
            effects=(Effect.TIMING,),
        )
    return Fix(
        title=f"pin `{short(source, 30)}` and copy it without waiting",
        safety=Safety.UNSAFE,
        edits=(
            Edit(start, end, f"({pinning})"),
            Edit(close, close, f"{comma}non_blocking=True"),
        ),
        effects=(Effect.TIMING, Effect.MEMORY),
        requires=("pinning works (not on WSL)",),
    )


def _of_numbers(source: ast.expr, view: FunctionView) -> bool:
    """Whether a name holds what ``torch.tensor`` made of Python numbers just before."""
    bound = binding(source, view)
    if bound is None or not isinstance(bound[0], ast.Call) or len(bound[0].args) != 1:
        return False
    data = view.value(bound[0].args[0])
    several = data.kind is Kind.SEQUENCE and (data.element is None or data.element.kind not in _LARGE)
    numbers = data.kind is Kind.SCALAR or several
    return numbers and view.qualified(bound[0].func) in ("torch.tensor", "torch.as_tensor")


def kept_there(call: ast.Call, receiver: ast.expr, moved: Move, definition: Definition) -> Fix | None:
    """A table in ``self.x`` that one method copies at every call: keep the copy in its place."""
    view = definition.view
    if not (
        isinstance(receiver, ast.Attribute) and isinstance(receiver.value, ast.Name) and receiver.value.id == "self"
    ):
        return None
    device = moved.device
    if device is None or not pure_chain(device):
        return None
    holder = _class_of(definition)
    if holder is None or not _read_here_only(holder, receiver.attr, first_line(view.statement(call))):
        return None
    if re.search(r"register_buffer", _comments(definition, holder), re.IGNORECASE):
        return None  # somebody says why it is no buffer; what else holds is not for us to know
    name, where = definition.text(receiver), definition.text(device)
    statement = view.statement(call)
    lines = [f"if {name}.device != {where}:", f"    {name} = {name}.to({where})"]
    above = insert_before(statement, lines, definition)
    if above is None or isinstance(statement, ast.While | ast.For | ast.FunctionDef):
        return None
    return Fix(
        title=f"keep `{name}` on the device after the first copy",
        safety=Safety.UNSAFE,
        edits=(above,),
        effects=(Effect.MEMORY,),
        requires=("the object serves one device at a time",),
    )


def _class_of(definition: Definition) -> ast.ClassDef | None:
    """The innermost class around the view, with all of its methods."""
    node = definition.view.node
    if isinstance(node, ast.Module):
        return None
    around = [
        part
        for part in ast.walk(definition.whole)
        if isinstance(part, ast.ClassDef) and part.lineno < node.lineno <= (part.end_lineno or 0)
    ]
    return max(around, key=lambda part: part.lineno, default=None)


def _read_here_only(holder: ast.ClassDef, attribute: str, line: int) -> bool:
    """Whether the method around a line is the only one that reads ``self.attribute``, and a constructor writes it."""
    for method_node in holder.body:
        if not isinstance(method_node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for part in ast.walk(method_node):
            if not (isinstance(part, ast.Attribute) and part.attr == attribute and ast.unparse(part.value) == "self"):
                continue
            if isinstance(part.ctx, ast.Load):
                if not method_node.lineno <= line <= (method_node.end_lineno or 0):
                    return False
            elif method_node.name != "__init__":
                return False
    return True


def _comments(definition: Definition, holder: ast.ClassDef) -> str:
    source = definition.source
    last = holder.end_lineno or holder.lineno
    end = source.line_starts[last] if last < len(source.line_starts) else len(source.text)
    text = source.text[source.line_starts[holder.lineno - 1] : end]
    return "\n".join(line for line in text.split("\n") if "#" in line)


def _only_read(node: ast.expr, view: FunctionView) -> bool:
    """Whether nobody writes into a tensor in place, as far as its own name tells, or keeps it."""
    name = assigned_name(view, node)
    if kept(node, view) or (name is not None and any(kept(use, view) for use in view.uses(name))):
        return False
    if name is None:
        parent = view.parent(node)
        return isinstance(parent, ast.BinOp | ast.Subscript | ast.Call | ast.Attribute) and not (
            isinstance(parent, ast.Attribute) and parent.attr.endswith("_")
        )
    for use in view.uses(name):
        parent = view.parent(use)
        if parent is None or isinstance(parent, ast.Return | ast.AugAssign | ast.Yield | ast.Assign):
            return False
        if isinstance(parent, ast.Subscript) and parent.value is use and not isinstance(parent.ctx, ast.Load):
            return False
        if isinstance(parent, ast.Attribute) and parent.attr.endswith("_") and not parent.attr.endswith("__"):
            return False
        if isinstance(parent, ast.keyword) and parent.arg == "out":
            return False
    return not any(isinstance(statement, ast.AugAssign) for statement in view.assignments(name))
