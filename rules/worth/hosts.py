"""Tensors that live on the host, by what authors and serving engines do with them."""

from __future__ import annotations

import ast
import re
from typing import TypeGuard

from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.alike import calls_at, passed_to
from awp_lint.rules.common import callee, names_in
from awp_lint.rules.told import called_host
from awp_lint.rules.worth.source import behind, origins
from awp_lint.rules.worth.table import Case, doubt

#: Sizes and masks of multi-modal inputs that serving engines keep on the host, in all models.
_KEPT_ON_HOST = re.compile(r"(\w+_)?(grid_thws?|grid_hws?|is_embed|spatial_crop|num_pooled_patches|(tgt|target)_sizes)")
#: A file of such an engine, or of a model written for one.
_ENGINE = re.compile(r"^\s*(from|import) (vllm|sglang|lmdeploy|aphrodite)\b", re.MULTILINE)
#: A model's own: ``image_sizes=MultiModalFieldConfig.batched("image", keep_on_cpu=True)``.
_KEPT_FIELD = re.compile(r"\b(\w+)[\"']?\s*[=:]\s*MultiModalFieldConfig\.\w+\((?:[^()]|\([^()]*\))*\bkeep_on_cpu=True")
#: Methods that give a copy of an object on the host, asynchronously as a rule: its others work on that copy.
_TO_HOST = re.compile(r"_?(to|copy_to)_(cpu|host)(_\w+)?")

#: What a diffusion scheduler knows of all steps, and its methods that look something up there.
_TABLE = re.compile(r"sigmas|alphas|betas|(final_)?alphas?_cumprod|_get_variance|_sigma_to_alpha_sigma_t")
_SCHEDULER = re.compile(r"(^|[._])scheduler$")


@doubt(r"AWP[16]\d+")
def said_to_be_on_host(case: Case) -> bool:
    """It comes from a parameter that is said to hold a tensor on the host."""
    return called_host(behind(case.node, case.view), case.view, case.file)


@doubt(r"AWP[16]\d+")
def has_host_twin(case: Case) -> bool:
    """A method reads a part of its own object, whose class has a method that brings all of it to the host."""
    view = case.view
    if view.class_name is None or view.qualname.endswith(".__init__"):
        return False
    own, _, name = view.qualname.rpartition(".")
    if _TO_HOST.fullmatch(name) or not any(
        isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self"
        for part in ast.walk(case.node)
    ):
        return False
    methods: frozenset[str] | None = case.file.memo.get(has_host_twin)
    if methods is None:
        methods = case.file.memo[has_host_twin] = frozenset(v.qualname for v in case.file.functions())
    return any(m.startswith(f"{own}.") and _TO_HOST.fullmatch(m[len(own) + 1 :]) for m in methods)


@doubt(r"AWP[16]\d+")
def kept_on_host(case: Case) -> bool:
    """It comes from a multi-modal input that serving engines never move to the device."""
    if not _of_engine(case.view, case.file):
        return False
    fields = case.file.memo.get(kept_on_host)
    if fields is None:
        fields = case.file.memo[kept_on_host] = frozenset(_KEPT_FIELD.findall(case.file.text))
    return any(name in fields or _KEPT_ON_HOST.fullmatch(name) for name in behind(case.node, case.view))


@doubt("AWP102")
def table_of_schedule(case: Case) -> bool:
    """``variance > 0`` of a table that schedulers keep on the host: the variances and sigmas of all steps."""
    if not (isinstance(case.node, ast.Compare) and isinstance(case.node.comparators[0], ast.Constant)):
        return False
    return any(
        isinstance(part, ast.Attribute) and _TABLE.fullmatch(part.attr) and _SCHEDULER.search(ast.unparse(part.value))
        for expression in origins(case.node.left, case.view)
        for part in ast.walk(expression)
    )


@doubt("AWP10[1-4]")
def schedule_on_host(case: Case) -> bool:
    """A time of a schedule that the function sets without a device: diffusers leaves it on the host then."""
    view = case.view
    known = view.memo.setdefault(schedule_on_host, {})
    if not known:
        calls = [call for call in view.nodes(ast.Call) if isinstance(call, ast.Call)]
        sets = [call for call in calls if getattr(call.func, "attr", "") == "set_timesteps"]
        moved = any(_moves_times(call) for call in calls)
        known[None] = bool(sets) and not moved and not any(_names_device(call) for call in sets)
    return bool(known[None]) and any("timestep" in name for name in behind(view.statement(case.node), view))


def _names_device(call: ast.Call) -> bool:
    """``set_timesteps(50, device)``; what is handed on by ``**kwargs`` may hold one."""
    return len(call.args) > 1 or any(word.arg in (None, "device") for word in call.keywords)


def _moves_times(call: ast.Call) -> bool:
    """``timesteps.to(device)``."""
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in ("to", "cuda")
        and "timestep" in ast.unparse(call.func.value)
    )


@doubt("AWP10[1-5]")
def turned_into_an_array(case: Case) -> bool:
    """The function makes an array of a tensor of its arguments as it came, which only tensors on the host allow."""
    view = case.view
    known = view.memo.setdefault(turned_into_an_array, {})
    if not known:
        calls = (call for call in view.nodes(ast.Call) if isinstance(call, ast.Call))
        known[None] = {name for call in calls for name in _made_array(call, view)}
    return bool(known[None]) and not known[None].isdisjoint(behind(view.statement(case.node), view))


@doubt("AWP10[1-5]")
def brought_above(case: Case) -> bool:
    """A caller has made an array of it, whatever the parameter is declared to be."""
    wanted = behind(case.view.statement(case.node), case.view) & _tensors(case.view)
    current = case.view
    for frame in reversed(case.frequency.chain):
        if len(wanted) != 1 or frame.path != case.view.path:
            return False
        callers = [other for other in case.file.functions() if other.qualname == frame.function]
        found = [(other, call) for other in callers for call in calls_at(other, frame.line, current)]
        passed = passed_to(found[0][1], current) if found else None
        argument = passed.get(wanted.pop()) if passed else None
        if argument is None:
            return False
        current = found[0][0]
        if any(isinstance(part, ast.Call) and callee(part) == "numpy" for part in origins(argument, current)):
            return True
        wanted = behind(argument, current) & _tensors(current)
    return False


def _tensors(view: FunctionView) -> set[str]:
    """The parameters that are declared to be tensors."""
    return {name for name, declared in _declared(view) if "Tensor" in ast.unparse(declared)}


def _declared(view: FunctionView) -> list[tuple[str, ast.expr]]:
    """The parameters with annotations, and these."""
    if isinstance(view.node, ast.Module):
        return []
    arguments = (*view.node.args.posonlyargs, *view.node.args.args, *view.node.args.kwonlyargs)
    return [(a.arg, a.annotation) for a in arguments if a.annotation is not None]


@doubt("AWP10[1-5]")
def declared_as_list(case: Case) -> bool:
    """It comes from a parameter that may be a list by its declaration, as most callers have it."""
    lists = {name for name, declared in _declared(case.view) if _list_or_tensor(declared)}
    return bool(lists) and not lists.isdisjoint(names_in(case.node))


def _list_or_tensor(annotation: ast.expr) -> bool:
    """``Union[list, Tensor]``, ``Tensor | list[float]``; lists of tensors are another matter."""
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        members = [annotation.left, annotation.right]
        if isinstance(annotation.left, ast.BinOp):
            members = [annotation.left.left, annotation.left.right, annotation.right]
    elif isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value).rpartition(".")[2] == "Union":
        members = list(annotation.slice.elts) if isinstance(annotation.slice, ast.Tuple) else []
    else:
        return False
    plain = (member.value if _of_numbers(member) else member for member in members)
    names = {ast.unparse(member).rpartition(".")[2] for member in plain}
    return "Tensor" in names and not names.isdisjoint(("list", "List", "tuple", "Tuple", "Sequence"))


def _of_numbers(member: ast.expr) -> TypeGuard[ast.Subscript]:
    """``list[float]``."""
    return isinstance(member, ast.Subscript) and ast.unparse(member.slice) in ("int", "float", "bool")


#: What leaves a tensor where it is.
_STAYS = frozenset(("detach", "squeeze", "unsqueeze", "view", "reshape", "flatten", "transpose", "permute", "float"))
_DEEP = 4  # names on the way to a parameter


def _made_array(call: ast.Call, view: FunctionView) -> set[str]:
    """The parameters behind ``x`` of ``x.numpy()``, if nothing on the way there makes another tensor."""
    func = call.func
    if not (isinstance(func, ast.Attribute) and func.attr == "numpy" and not call.args and not call.keywords):
        return set()
    parameters = _parameters(view)
    found: set[str] = set()
    waiting = [(func.value, 0)]
    while waiting:
        part, depth = waiting.pop()
        while not isinstance(part, ast.Name):
            if isinstance(part, ast.Subscript):
                part = part.value
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _STAYS:
                part = part.func.value
            else:
                return set()
        if part.id in parameters:
            found.add(part.id)
        for statement in view.assignments(part.id):
            if not isinstance(statement, ast.Assign) or depth == _DEEP:
                return set()
            if statement.value is not call:
                waiting.append((statement.value, depth + 1))
    return found


def _parameters(view: FunctionView) -> set[str]:
    if isinstance(view.node, ast.Module):
        return set()
    arguments = view.node.args
    return {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _of_engine(view: FunctionView, file: FileView) -> bool:
    """Whether a file belongs to a serving engine, whose processors make the sizes of inputs and keep them there."""
    if "vllm/" in view.path:
        return True
    known: bool | None = file.memo.get(_of_engine)
    if known is None:
        known = file.memo[_of_engine] = _ENGINE.search(file.text) is not None
    return known


DOUBTS = (
    said_to_be_on_host,
    has_host_twin,
    kept_on_host,
    table_of_schedule,
    schedule_on_host,
    turned_into_an_array,
    brought_above,
    declared_as_list,
)
