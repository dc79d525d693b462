"""Code that requests do not come to, or that is not there for them."""

from __future__ import annotations

import ast
import re

from awp_lint.detector.semantics.regions import is_template
from awp_lint.detector.semantics.spare import adds_exports
from awp_lint.detector.semantics.view import FileView, FunctionView, Level
from awp_lint.rules.common import ancestors, beside_service
from awp_lint.rules.doubts import default_none, off_by_default, off_in_keywords
from awp_lint.rules.told import called_another_form, called_debugging, called_export
from awp_lint.rules.worth.table import Case, doubt

#: Code that rarely runs, or for people: the reads are what it is there for.
_ASIDE = re.compile(
    r"(^|/)(eplb|visuali[sz]\w*|plotting|interpretab\w*|explain\w*|diagnos\w*|kv_transfer|kv_connector\w*)(/|\.py$)"
    r"|(^|[/_])(visuali[sz](er|ation)s?|plots?|interpretability)\.py$"
)
#: Of a table that each model kept for itself: ``{"sdpa": …, "flash_attention_2": XFlashAttention2}``.
_FLASH_CLASS = re.compile(r"FlashAttention2(\.|$)")
_WRITES = re.compile(
    r"_?(save|write|store|export|dump)_(audios?|wavs?|waveforms?|images?|videos?|masks?|files?|samples?)(_\w+)?"
    r"|(audio|wav|image|video)_(write|save)"
)
#: Activations that PyTorch has had as modules for years.
_ACTIVATION = re.compile(r"Swish|Si[Ll][Uu]|Mish|GELU|H(ard)?[Ss](wish|igmoid)")
_ANOTHER_FORM = re.compile(r"([\w.]*\.\w+)_(custom|old|legacy|slow|simple|v1|backup|deprecated|reference)")
_LOSS = re.compile(r"(\w+_)?loss(es)?")
#: Samples of reinforcement learning, drawn with their probabilities.
_ROLLOUT = re.compile(r"(^|_)rollout(_|$)")


@doubt()
def template(case: Case) -> bool:
    """A file that others are generated from: it is they that run."""
    return is_template(case.view.path)


@doubt(r"AWP(?!605)\d+")  # caches are flushed in training, too
def unserved(case: Case) -> bool:
    """The other branch of a switch, what only training or an error message needs, what objects do when made."""
    return beside_service(case.view, case.node, case.frequency)


@doubt(r"AWP[16]\d+")
def aside(case: Case) -> bool:
    """A tool for people, or what rarely runs: its reads are what it is there for. Or what such a tool alone calls."""
    paths = (case.view.path, *(frame.path for frame in case.frequency.chain))
    return any(map(_ASIDE.search, paths))


@doubt()
def said_to_be_export(case: Case) -> bool:
    """Below a flag that is said to hold of exported models only."""
    return called_export(case.node, case.view, case.file)


@doubt()
def said_to_be_debugging(case: Case) -> bool:
    """A function or class that is said to be there for debugging."""
    return called_debugging(case.view, case.file)


@doubt()
def of_another_form(case: Case) -> bool:
    """For inputs whose last axis is of another size than the file says elsewhere."""
    return called_another_form(case.node, case.view, case.file)


#: A flag that asks for something beside the result.
_MORE = re.compile(r"(return|output|with|keep|save|store|collect|get)_\w+")


@doubt()
def more_than_usual(case: Case) -> bool:
    """Below a parameter that asks for more than the usual result, and is off unless somebody passes it."""
    off = off_by_default(case.view)
    child: ast.AST = case.node
    for parent in ancestors(case.view, case.node):
        if isinstance(parent, ast.If) and child in parent.body:
            asked = parent.test.values if isinstance(parent.test, ast.BoolOp) else [parent.test]
            every = isinstance(parent.test, ast.BoolOp) and isinstance(parent.test.op, ast.Or)
            wanted = [
                isinstance(part, ast.Name) and part.id in off and bool(_MORE.fullmatch(part.id)) for part in asked
            ]
            if all(wanted) if every else any(wanted):
                return True
        child = parent
    return False


@doubt()
def keyword_option(case: Case) -> bool:
    """Below an option that keywords or settings ask for, and that is off unless they do."""
    off = off_in_keywords(case.view)
    child: ast.AST = case.node
    for parent in ancestors(case.view, case.node) if off else ():
        if isinstance(parent, ast.If) and child in parent.body:
            together = isinstance(parent.test, ast.BoolOp) and isinstance(parent.test.op, ast.And)
            asked = parent.test.values if together and isinstance(parent.test, ast.BoolOp) else [parent.test]
            if any(isinstance(part, ast.Name) and part.id in off for part in asked):
                return True
        child = parent
    return False


@doubt()
def chosen_implementation(case: Case) -> bool:
    """A class of attention that a model uses where somebody asks for it: its table names another by default.

    Or what it calls in its file: what many models share is reached by others, too.
    """
    own = (frame.function for frame in case.frequency.chain if frame.path == case.view.path)
    return any(map(_FLASH_CLASS.search, (case.view.qualname, *own)))


@doubt()
def mask_left_out(case: Case) -> bool:
    """Where no mask is given to a layer: models and generation give one, unless calls are seen that leave it out."""
    masks = {name for name in _missing(case) if name.endswith("mask")}
    if not masks:
        return False
    return not case.frequency.chain or not masks.isdisjoint(_asked_for(case.view))


@doubt()
def ids_left_out(case: Case) -> bool:
    """Where embeddings are given without the ids that they are of: generation gives ids."""
    return "input_ids" in _missing(case)


def _missing(case: Case) -> set[str]:
    """Parameters that are None where the node stands: ``if name is None:``."""
    found: set[str] = set()
    known = default_none(case.view) | _asked_for(case.view)
    child: ast.AST = case.node
    for parent in ancestors(case.view, case.node):
        if isinstance(parent, ast.If) and child in parent.body and isinstance(parent.test, ast.Compare):
            name = parent.test.left.id if isinstance(parent.test.left, ast.Name) else ""
            if isinstance(parent.test.ops[0], ast.Is) and name in known:
                found.add(name)
        child = parent
    return found


def _asked_for(view: FunctionView) -> frozenset[str]:
    """Parameters without a default: every call gives something."""
    arguments = getattr(view.node, "args", None)
    if not isinstance(arguments, ast.arguments):
        return frozenset()
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = positional[: len(positional) - len(arguments.defaults)]
    needed += [a for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None]
    return frozenset(argument.arg for argument in needed)


@doubt("AWP10[1-5]")
def written_to_file(case: Case) -> bool:
    """What a file is made of: it is on the host by then, or has to be brought there once for each file."""
    names = (case.view.qualname, *(frame.function for frame in case.frequency.chain))
    return any(_WRITES.fullmatch(name.rpartition(".")[2]) for name in names)


@doubt("AWP60[1-3]")
def of_a_loss(case: Case) -> bool:
    """The beginning of a loss, which training alone reads."""
    statement = case.node if isinstance(case.node, ast.stmt) else case.view.statement(case.node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(isinstance(target, ast.Name) and _LOSS.fullmatch(target.id) for target in targets)


@doubt("AWP303", seldom=True)
def own_activation(case: Case) -> bool:
    """A class that goes by the name of one of PyTorch's, which nothing shown runs: for old versions, or by its name."""
    if case.path != (Level.REQUEST,) or case.frequency.chain:
        return False
    name = (case.view.class_name or "").rpartition(".")[2]
    body = [s for s in getattr(case.view.node, "body", ()) if not isinstance(s, ast.Expr)]
    return _ACTIVATION.fullmatch(name) is not None and len(body) == 1 and isinstance(body[0], ast.Return)


@doubt()
def beside_its_sibling(case: Case) -> bool:
    """A method that nothing shown calls beside one whose name it has but for a word: ``generate_custom``."""
    found = _ANOTHER_FORM.fullmatch(case.view.qualname)
    if found is None or case.frequency.chain:
        return False
    names: frozenset[str] | None = case.file.memo.get(beside_its_sibling)
    if names is None:
        methods = re.findall(r"^[ \t]+(?:async )?def (\w+)\(", case.file.text, re.MULTILINE)
        names = case.file.memo[beside_its_sibling] = frozenset(methods)
    return found.group(1).rpartition(".")[2] in names


@doubt()
def rollout(case: Case) -> bool:
    """Samples of reinforcement learning, drawn with their probabilities: training."""
    return _ROLLOUT.search(case.view.qualname) is not None and "log_prob" in case.file.text


@doubt()
def left_over(case: Case) -> bool:
    """A class that is named nowhere but where it is defined, in the whole package, and is not for others.

    Or one of its file that calls it is.
    """
    frames = (frame.function for frame in case.frequency.chain if frame.path == case.view.path)
    classes = {cls for cls, dot, _ in (name.partition(".") for name in (case.view.qualname, *frames)) if dot}
    return any(_named_once(cls, case.file) and case.file.is_spare(cls) for cls in classes)


def _times(word: str, text: str) -> int:
    """How often a text holds a word as a whole; 2 for more."""
    found, at = 0, text.find(word)
    while at >= 0 and found < 2:
        end = at + len(word)
        found += not any(char.isalnum() or char == "_" for char in (text[at - 1 : at], text[end : end + 1]))
        at = text.find(word, end)
    return found


def _named_once(cls: str, file: FileView) -> bool:
    """Whether a class is named once in the file, and is handed to nothing where it is defined: to a decorator, or to
    what takes keywords of classes."""
    text = file.text
    if _times(cls, text) != 1 or _times("globals", text) or "sys.modules" in text or not _plain_exports(file):
        return False
    own = [s for s in file.tree.body if isinstance(s, ast.ClassDef) and s.name == cls]
    return len(own) == 1 and not own[0].decorator_list and not own[0].keywords


def _plain_exports(file: FileView) -> bool:
    """Whether a file says in one plain list what it gives others, or says nothing of it."""
    if "__all__" not in file.text:
        return True
    if adds_exports(file.text):
        return False
    lists = [s.value for s in file.tree.body if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == "__all__"]
    plain = len(lists) == 1 and isinstance(lists[0], ast.List | ast.Tuple)
    return plain and all(isinstance(part, ast.Constant) for part in getattr(lists[0], "elts", ()))


DOUBTS = (
    template,
    unserved,
    aside,
    said_to_be_export,
    said_to_be_debugging,
    of_another_form,
    more_than_usual,
    keyword_option,
    chosen_implementation,
    mask_left_out,
    ids_left_out,
    beside_its_sibling,
    written_to_file,
    of_a_loss,
    own_activation,
    rollout,
    left_over,
)
