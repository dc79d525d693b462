"""What a compiler stumbles over in code that nothing compiles yet: version checks, logs, tensors a module replaces."""

from __future__ import annotations

import ast
import re

from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.common import ancestors, callee
from awp_lint.rules.fusion.context import class_node
from awp_lint.rules.memo import says

#: Functions that compare a library's version, by last name.
_VERSIONS = re.compile(
    r"is_\w*version|is_torch_(greater|less|equal|newer|older)\w*|is_\w+_greater_or_equal\w*|compare_versions?"
)
_NAMES = frozenset({"isinstance", "info", "debug", "signature", "getfullargspec", "parse", "Version", "parse_version"})
_RARE = re.compile(r"deprecat|warn|is_compiled|lazy|(^|_)(build|create|make|init|construct|setup)(_|$)", re.IGNORECASE)
#: That somebody compiles what a file holds: it speaks of a compiler, or its models are diffusers', which users compile
#: block by block.
_FOR_COMPILERS = re.compile(
    r"\bModelMixin\b|_repeated_blocks|is_(dynamo_)?compiling|is_compileable|torch\.compile|dynamo"
    r"|_compile_fullgraph|support_torch_compile|\.compile\("
)
#: Checks that their library hands to compilers as constants, from a cache.
_CONSTANT_FOR_COMPILERS = "transformers.utils."
_MOVES = frozenset({"to", "cuda", "float", "half", "bfloat16", "type", "type_as", "contiguous"})

WORDS = (
    b"logger.info",
    b"logger.debug",
    b"log.debug",
    b"log.info",
    b"logging.",
    b"_orig_mod",
    b"_version",
    b"_or_equal",
    b"compare_version",
    b"version.parse",
    b"Version(",
)


def may_puzzle(call: ast.Call) -> bool:
    """Whether a call can be one of those below by its name: the quick answer for most calls."""
    name = callee(call)
    return name in _NAMES or _VERSIONS.fullmatch(name) is not None


def version_check(call: ast.Call, view: FunctionView) -> bool:
    """Whether a call compares the version of an installed library: the answer is the same in every call."""
    own = view.qualname.rpartition(".")[2]
    if _RARE.search(own) or _VERSIONS.fullmatch(own.lstrip("_")) or _behind(call, view):
        return False
    dotted = view.qualified(call.func) or ""
    if dotted in ("packaging.version.parse", "packaging.version.Version", "pkg_resources.parse_version"):
        return _innermost_comparison(call, view)
    if _VERSIONS.fullmatch(callee(call)) is None or isinstance(call.func, ast.Attribute):
        return False
    if dotted.startswith(_CONSTANT_FOR_COMPILERS) or _where_missing(call, view):
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return bool(given) and any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in given)


def reads_signature(call: ast.Call, view: FunctionView) -> bool:
    """``inspect.signature(self.processor.__call__)``: built anew from code objects in every call."""
    if _RARE.search(view.qualname.rpartition(".")[2]) or not call.args:
        return False
    return view.qualified(call.func) in ("inspect.signature", "inspect.getfullargspec")


def step_logging(call: ast.Call, view: FunctionView) -> bool:
    """Whether a call logs progress or details (no warning) in the ``forward`` of a module."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in ("debug", "info") or not call.args:
        return False
    owner = func.value
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    logs = name.lower() in ("logger", "log", "_logger") or (view.qualified(func) or "").startswith("logging.")
    search = "Search" in (view.class_name or "")  # of hypotheses, on the host: nobody compiles it
    return logs and not search and view.qualname.endswith(".forward") and "torch.nn.Module" in view.class_bases


def wrapped_test(call: ast.Call, view: FunctionView) -> int | None:
    """For ``isinstance(self.x, Class)`` the line in which the same function unwraps what ``self.x`` may compile."""
    if not (isinstance(call.func, ast.Name) and call.func.id == "isinstance" and len(call.args) == 2):
        return None
    tested = call.args[0]
    if not isinstance(tested, ast.Attribute):
        return None
    code = ast.unparse(tested)
    for statement in view.nodes(ast.Assign):
        assert isinstance(statement, ast.Assign)
        if statement.lineno < call.lineno and isinstance(statement.value, ast.IfExp):
            choices = (statement.value.body, statement.value.orelse)
            if {ast.unparse(choice) for choice in choices} == {code, f"{code}._orig_mod"}:
                return statement.lineno
    return None


def _behind(call: ast.Call, view: FunctionView) -> bool:
    """Whether something before it (a device, a mode) decides if the call runs at all."""
    child: ast.AST = call
    for parent in ancestors(view, call):
        if isinstance(parent, ast.BoolOp) and child is not parent.values[0]:
            return True
        child = parent
    return False


def _where_missing(call: ast.Call, view: FunctionView) -> bool:
    """Whether the call stands below ``if self.mask is None:``, where something is made that is then kept."""
    child: ast.AST = call
    for parent in ancestors(view, call):
        if isinstance(parent, ast.If) and any(child is statement for statement in parent.body):
            for part in ast.walk(parent.test):
                if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Is):
                    return True
        child = parent
    return False


def _innermost_comparison(call: ast.Call, view: FunctionView) -> bool:
    parent = view.parent(call)
    return isinstance(parent, ast.Compare) and parent.left is call and bool(call.args)


def replaced_tensor(statement: ast.Assign, view: FunctionView) -> str | None:
    """``self.x`` of ``self.x = self.x.to(device)`` in a module's method: a tensor that is put in its own place."""
    value = statement.value
    if len(statement.targets) != 1 or not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    target, source = statement.targets[0], value.func.value
    if value.func.attr not in _MOVES or not isinstance(target, ast.Attribute) or not isinstance(source, ast.Attribute):
        return None
    name = ast.unparse(target)
    if name != ast.unparse(source) or not name.startswith("self.") or name.count(".") != 1:
        return None
    return name if view.value(source).kind is Kind.TENSOR and in_step(view) else None


def in_step(view: FunctionView) -> bool:
    """Whether a definition is what compiled steps run: a module's ``forward``, a logits processor's ``__call__``."""
    method = view.qualname.rpartition(".")[2]
    if method == "forward":
        return "torch.nn.Module" in view.class_bases
    return method == "__call__" and any(base.endswith(("LogitsProcessor", "LogitsWarper")) for base in view.class_bases)


def meant_to_be_compiled(view: FunctionView, file: FileView) -> bool:
    """Whether anything tells that a module's ``forward`` is compiled. Logits processors are not, nowhere."""
    return view.qualname.endswith(".forward") and says(file, _FOR_COMPILERS)


def is_buffer(name: str, view: FunctionView, file: FileView) -> bool:
    """Whether the class registers ``self.x`` as a buffer or parameter."""
    cls = class_node(view, file)
    for part in ast.walk(cls) if cls is not None else ():
        if isinstance(part, ast.Call) and callee(part) in ("register_buffer", "register_parameter") and part.args:
            first = part.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str) and f"self.{first.value}" == name:
                return True
    return False
