"""What authors say in words: that a branch is the fallback, that a wait was weighed, that a tensor lives on the host.

A comment or a docstring is no proof, but whoever wrote «falls back to the device-side check» or ``# CPU tensor [1]``
knew more than the code shows. What they say only takes findings back, it never makes one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.common import ancestors, callee, lines_of
from awp_lint.rules.numbers import whole

_FALLBACK = re.compile(r"\bfall(s|ing)?[ -]?backs?\b|\bunreache?d\b|\bunreachable\b|\bdefensive(ly)?\b", re.IGNORECASE)
_DEBUG = re.compile(r"^\W*(for )?debug(ging)?\b", re.IGNORECASE)
_EXPORT = re.compile(r"\bexport(s|ed|er|ing)?\b", re.IGNORECASE)
#: That a wait was thought about and kept; whoever means to mend it says so, too.
_WAIT = r"\b(re|de)?-?sync(hroni[sz]\w*|s)?\b|\bD(->|2|-to-)H\b"
_ACCEPTED = (
    r"\b(acceptable|unavoidable|allowed|tolerable|affordable|negligible|harmless)\b|\b(is|are) (fine|ok(ay)?|cheap)\b"
    r"|\b(intentional|deliberate)(ly)?\b|\boutside (of )?(the |any )?(captured?|graph|compiled)\b"
)
_WAIT_KEPT = re.compile(rf"({_WAIT})[^.]{{0,30}}({_ACCEPTED})|({_ACCEPTED})[^.]{{0,30}}({_WAIT})", re.IGNORECASE)
_READ_KEPT = re.compile(rf"\.(item|tolist|cpu)\(\).*({_ACCEPTED})", re.IGNORECASE | re.DOTALL)
_TO_DO = re.compile(
    r"\b(TODO|FIXME|XXX|HACK)\b|\b(not|never|un)[ -]?(acceptable|allowed|fine|ok(ay)?|cheap)\b", re.IGNORECASE
)
_ALLOWS = re.compile(r"(^|_)(allow(ed|s)?_(\w+_)?syncs?|syncs?_allowed)(_|$)")
_ON_HOST = re.compile(r"\b(CPU|host)[ -](side )?tensor|\btensor (is )?on (the )?(CPU|host)\b", re.IGNORECASE)


def called_fallback(node: ast.AST, view: FunctionView, file: FileView) -> bool:
    """Whether the code around a node is called a fallback: its function or class in the docstring, or its branch."""
    return (
        _in_fallback_branch(node, view, file)
        or any(map(_summary_says_so, _holders(view, file)))
        or _without_what_was_given(node, view)
    )


def _without_what_was_given(node: ast.AST, view: FunctionView) -> bool:
    """Whether a node stands behind ``if mask is not None: … return`` in a function whose docstring says what it falls
    back to «without a mask»."""
    if not isinstance(view.node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    text = ast.get_docstring(view.node, clean=False) or ""
    if not _FALLBACK.search(text):
        return False
    statement = next((s for s in view.node.body if node is s or any(node is part for part in ast.walk(s))), None)
    for earlier in view.node.body:
        if earlier is statement:
            return False
        given = _left_where_given(earlier)
        if given is not None:
            word = re.escape(given.rpartition("_")[2])
            if re.search(
                rf"\bwithout (an? |the |any )?[`*]*(\w+_)?{word}[`*]*,? [^.]{{0,40}}\bfalls? back", text, re.I
            ):
                return True
    return False


def _left_where_given(statement: ast.stmt) -> str | None:
    """The name of ``if name is not None: … return``."""
    if not (isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], ast.Return)):
        return None
    test = statement.test
    if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and isinstance(test.ops[0], ast.IsNot)):
        return None
    return test.left.id


def called_debugging(view: FunctionView, file: FileView) -> bool:
    """Whether a function or its class is said to be there for debugging: by the first words of its docstring or of the
    comment above it."""
    for holder in _holders(view, file):
        if not isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        text = ast.get_docstring(holder, clean=False) or ""
        if _DEBUG.match(text) or _DEBUG.match(
            _comment_above(holder.decorator_list[0] if holder.decorator_list else holder, file)
        ):
            return True
    return False


def called_export(node: ast.AST, view: FunctionView, file: FileView) -> bool:
    """Whether a node stands below a flag that is said to hold of exported models only."""
    child: ast.AST = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.If) and child in parent.body and isinstance(parent.test, ast.Name):
            made = view.assignments(parent.test.id)
            if len(made) == 1 and isinstance(made[0], ast.Assign):
                line = lines_of(file.text)[made[0].lineno - 1].partition("#")[2]
                if _EXPORT.search(line) or _EXPORT.search(_comment_above(made[0], file)):
                    return True
        child = parent
    return False


def called_another_form(node: ast.AST, view: FunctionView, file: FileView) -> bool:
    """Whether a node stands below ``boxes.shape[-1] == 2``, by a name of that size too, while a docstring of the file
    says of a parameter of that name that its last axis has another size: ``shape (bs, queries, 4)``."""
    child: ast.AST = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.If) and child in parent.body and (asked := _last_axis(parent.test, view)) is not None:
            name, size = asked
            told = {whole(found) for found in re.findall(_SHAPE.format(re.escape(name)), file.text)}
            if told and size not in told:
                return True
        child = parent
    return False


#: ``boxes (torch.Tensor): Normalized boxes with shape (bs, num_queries, 4).``
_SHAPE = r"(?m)^[ ]*{}\b[^\n]*\bshape[^\n(\[]*[(\[][^\n()\[\]]*,[ ]*(\d+)[)\]]"


def _last_axis(test: ast.expr, view: FunctionView) -> tuple[str, int] | None:
    """The name and the number of ``name.shape[-1] == number``."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return None
    size, number = test.left, test.comparators[0]
    if isinstance(size, ast.Name):
        made = view.assignments(size.id)
        if len(made) != 1 or not isinstance(made[0], ast.Assign):
            return None
        size = made[0].value
    if not (isinstance(number, ast.Constant) and type(number.value) is int and isinstance(size, ast.Subscript)):
        return None
    holder = size.value
    if not (isinstance(holder, ast.Attribute) and holder.attr == "shape" and isinstance(holder.value, ast.Name)):
        return None
    return (holder.value.id, number.value) if ast.unparse(size.slice) == "-1" else None


def wait_weighed(node: ast.AST, view: FunctionView, file: FileView) -> bool:
    """Whether a comment on the branch that a node stands in, or right above its statement, says that a wait there was
    weighed and kept: «make the sync acceptable». One that names ``.item()`` speaks of such reads."""
    reads = isinstance(node, ast.Call) and callee(node) in ("item", "tolist", "cpu")
    child: ast.AST = node
    for parent in (node, *ancestors(view, node)):
        said = []
        if isinstance(parent, ast.stmt) and not isinstance(
            parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ):
            said.append(_comment_above(parent, file, block=True))
        if isinstance(parent, ast.If) and child is not parent.test:
            said.append(_comment_above((parent.body if child in parent.body else parent.orelse)[0], file))
        for text in said:
            if (_WAIT_KEPT.search(text) or (reads and _READ_KEPT.search(text))) and not _TO_DO.search(text):
                return True
        child = parent
    return False


def _in_fallback_branch(node: ast.AST, view: FunctionView, file: FileView) -> bool:
    child: ast.AST = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.If) and child is not parent.test:
            taken = child in parent.body
            first = (parent.body if taken else parent.orelse)[0]
            if _FALLBACK.search(_comment_above(first, file)) or _logs_so(first):
                return True
            above = _comment_above(parent, file)
            # above the whole statement it speaks of the other branch, unless it begins with the word
            if _FALLBACK.match(above.strip()) if taken else _FALLBACK.search(above) and not _is_elif(first, parent):
                return True
        child = parent
    return False


def _logs_so(first: ast.stmt) -> bool:
    """``logger.warning_once("No fast kernel. Falling back to a slow one.")``"""
    if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Call) and first.value.args):
        return False
    text = first.value.args[0]
    return (
        "warn" in callee(first.value)
        and isinstance(text, ast.Constant)
        and isinstance(text.value, str)
        and _FALLBACK.search(text.value) is not None
    )


def _is_elif(first: ast.AST, parent: ast.If) -> bool:
    return isinstance(first, ast.If) and len(parent.orelse) == 1


def _holders(view: FunctionView, file: FileView) -> Iterator[ast.AST]:
    yield view.node
    if view.class_name is not None:
        own = view.class_name.rpartition(".")[2]
        yield from (s for s in file.tree.body if isinstance(s, ast.ClassDef) and s.name == own)


def _summary_says_so(node: ast.AST) -> bool:
    """Whether the first line of a docstring calls what it describes a fallback."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    text = ast.get_docstring(node, clean=False)
    return text is not None and _FALLBACK.search(text.strip().partition("\n")[0]) is not None


def wait_allowed(node: ast.AST, view: FunctionView) -> bool:
    """Whether a wait stands in a block that its owner allows to wait: ``with gpu_sync_allowed():``."""
    return any(
        isinstance(parent, ast.With) and any(_allows(item.context_expr) for item in parent.items)
        for parent in ancestors(view, node)
    )


def _allows(opened: ast.expr) -> bool:
    return isinstance(opened, ast.Call) and _ALLOWS.search(callee(opened)) is not None


def called_host(names: set[str], view: FunctionView, file: FileView) -> bool:
    """Whether one of the names is a parameter that is said to hold a tensor on the host."""
    if not isinstance(view.node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    text = ast.get_docstring(view.node, clean=False) or ""
    arguments = view.node.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if argument.arg not in names or argument.arg == "self":
            continue
        line = lines_of(file.text)[(argument.end_lineno or argument.lineno) - 1]
        if _ON_HOST.search(line.partition("#")[2]):
            return True
        described = re.search(rf"\b{re.escape(argument.arg)}\b[^\n:]*:([^\n]*)", text)
        if described is not None and _ON_HOST.search(described.group(1)):
            return True
    return False


def _comment_above(node: ast.AST, file: FileView, block: bool = False) -> str:
    """The comment lines right above a statement; with ``block``, above what stands before it without a blank line."""
    lines = lines_of(file.text)
    number = getattr(node, "lineno", 1) - 2
    indent = " " * getattr(node, "col_offset", 0)
    while block and number >= 0 and re.match(rf"{indent}[^\s#]", lines[number]) and "=" in lines[number]:
        number -= 1
    found: list[str] = []
    while number >= 0 and lines[number].lstrip().startswith("#"):
        found.append(lines[number].strip().lstrip("#"))
        number -= 1
    return " ".join(reversed(found))
