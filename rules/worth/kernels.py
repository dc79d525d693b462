"""Plain forms of what a kernel does, which run where the kernel cannot."""

from __future__ import annotations

import ast
import re

from awp_lint.rules.common import ancestors, callee
from awp_lint.rules.flow import binding
from awp_lint.rules.told import called_fallback
from awp_lint.rules.worth.table import Case, doubt

#: The form in plain PyTorch of what has a kernel beside it: ``positions_torch`` and ``positions_triton``.
_PLAIN = re.compile(r"(\w+)_(torch|pytorch|native)$")
#: A test whether the data is as a kernel wants it, or what the kernel has given.
_ASKS_FOR_KERNEL = re.compile(r"\bis_cuda\b|(\b|_)fused(_ok\(|_\w*kernels?\(| is not None)|_op is not None")


@doubt()
def beside_kernel(case: Case) -> bool:
    """A function named as the plain form of another of its file that launches a kernel."""
    found = _PLAIN.fullmatch(case.view.qualname)
    if found is None:
        return False
    names: frozenset[str] | None = case.file.memo.get(beside_kernel)
    if names is None:
        names = case.file.memo[beside_kernel] = frozenset(v.qualname for v in case.file.functions())
    return any(f"{found.group(1)}_{kind}" in names for kind in ("triton", "cuda", "kernel", "fused"))


@doubt()
def declined(case: Case) -> bool:
    """Where a kernel that was tried gave nothing: ``if out is None:`` after ``try_it(…)``."""
    child: ast.AST = case.node
    for parent in ancestors(case.view, case.node):
        if isinstance(parent, ast.If) and child in parent.body and isinstance(parent.test, ast.Compare):
            test = parent.test
            missing = isinstance(test.ops[0], ast.Is) and ast.unparse(test.comparators[0]) == "None"
            made = binding(test.left, case.view) if missing else None
            if made is not None and isinstance(made[0], ast.Call) and callee(made[0]).lstrip("_").startswith("try_"):
                return True
        child = parent
    return False


@doubt("AWP30[123]")
def after_a_kernel(case: Case) -> bool:
    """What is left of a function where the kernel that it tries first cannot do it.

    Behind ``if x.is_cuda and …: return fused_norm(x)``.
    """
    body = getattr(case.view.node, "body", ())
    for earlier in body if isinstance(body, list) else ():
        if earlier.end_lineno >= getattr(case.node, "lineno", 0):
            return False
        if isinstance(earlier, ast.If) and not earlier.orelse and isinstance(earlier.body[-1], ast.Return):
            given = earlier.body[-1].value
            if isinstance(given, ast.Call | ast.Name) and _ASKS_FOR_KERNEL.search(ast.unparse(earlier.test)):
                return True
    return False


@doubt()
def said_to_be_fallback(case: Case) -> bool:
    """The code around it is called a fallback: its function or class in the docstring, or its branch."""
    return called_fallback(case.node, case.view, case.file)


@doubt()
def native(case: Case) -> bool:
    """The plain form of an operator that has kernels, or what it calls.

    ``forward_native`` of vLLM is compiled with the model around it, or runs where there is no kernel.
    """
    return "vllm/" in case.view.path and any(
        name.endswith(".forward_native")
        for name in (case.view.qualname, *(frame.function for frame in case.frequency.chain))
    )


#: What norms and activations are fused as, by the rule that tells of them.
_FUSED_FORMS = {
    "AWP302": frozenset({"rms_norm", "layer_norm", "group_norm"}),
    "AWP303": frozenset({"silu", "gelu", "softplus", "softmax", "log_softmax"}),
}


@doubt("AWP30[23]")
def beside_its_fused_form(case: Case) -> bool:
    """The other branch calls the fused function: this one is for versions that lack it."""
    child: ast.AST = case.node
    for parent in ancestors(case.view, case.node):
        if isinstance(parent, ast.If) and child is not parent.test:
            other = parent.orelse if child in parent.body else parent.body
            calls = (part for s in other for part in ast.walk(s) if isinstance(part, ast.Call))
            if any(callee(call) in _FUSED_FORMS[case.rule] for call in calls):
                return True
        child = parent
    return False


DOUBTS = (beside_kernel, declined, after_a_kernel, beside_its_fused_form, said_to_be_fallback, native)
