"""Whether a finding is worth a reviewer's time: right and negligible is hidden by default, as what is unsure is.

Two readers judged 240 findings in five libraries (benchmarks/precision). What they turned down most often was true and
not worth saying: one wait in a request that takes a second, one small kernel in a step of a large model, a copy that
happens on the first call only. Each such kind has its condition here, in one place for all rules.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import replace

from awp_lint.detector.finding import Confidence
from awp_lint.detector.semantics.regions import is_template
from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView, Level
from awp_lint.rules.base import Candidate
from awp_lint.rules.batching.calls import over_batches
from awp_lint.rules.common import ancestors, beside_service, callee, whole_program
from awp_lint.rules.flow import binding
from awp_lint.rules.told import (
    called_debugging,
    called_export,
    called_fallback,
    called_host,
    wait_allowed,
    wait_weighed,
)

#: Caches are flushed in training, too.
_FLUSHES = "AWP605"
#: Findings about one wait, copy or small kernel: they must run more often than once a request or an item of it.
_SINGLE = re.compile(r"AWP(10[124567]|30[16]|60[1-5]|610)")
#: Walks over a model's parts, which a loop over them would be, too: slower than a kernel. By themselves or in a helper.
_WALKS = re.compile(r"\b(named_)?(modules|parameters|buffers|children)\(")
_TOLD_WALKS = re.compile(r" walks through all modules of ")
#: What is as large as positions × dimensions, and what makes something of positions × positions.
_COSINES = "cosines"
_TRIANGLE = re.compile(r"\btri[lu]\(")
_FILLED = frozenset({"full", "ones", "zeros", "new_full", "new_ones", "new_zeros"})
#: What puts a few tensors beside each other.
_PUTS_TOGETHER = frozenset({"cat", "concat", "stack", "hstack", "vstack"})
#: What reads a number from the device, and what brings more of it to the host.
_READS = frozenset(("AWP101", "AWP108"))
_BRINGS = frozenset(("cpu", "tolist", "numpy"))
#: What happens a few times a request, and who runs it.
_FEW = _ONE_AN_ITEM = frozenset((Level.REQUEST, Level.ITEM, Level.LOOP))
#: What a begin index saves is told once for all steps.
_SMALL = re.compile(r"AWP(10|[23]|60[12356])")
_PREPARES = re.compile(r"_?(prepare|encode|check|get|retrieve)_\w+")
_PIPELINE = re.compile(r"\wPipeline\w*\.__call__$|\wStep\.(__call__|encode_\w+)$")
_WITHIN_STEPS = frozenset((Level.LAYER, Level.EXPERT, Level.ELEMENT))
#: Copies that find nothing to do once the attribute has been replaced.
_MOVES = frozenset(("AWP602", "AWP603", "AWP604", "AWP606"))
#: Code that rarely runs, or for people: the reads are what it is there for.
_ASIDE = re.compile(
    r"(^|/)(eplb|visuali[sz]\w*|plotting|interpretab\w*|diagnos\w*|kv_transfer|kv_connector\w*)(/|\.py$)"
    r"|(^|[/_])(visuali[sz](er|ation)s?|plots?|interpretability)\.py$"
)
#: Sizes and masks of multi-modal inputs that serving engines keep on the host, in all models.
_KEPT_ON_HOST = re.compile(r"(\w+_)?(grid_thws?|grid_hws?|is_embed|spatial_crop|num_pooled_patches|(tgt|target)_sizes)")
#: A file of such an engine, or of a model written for one.
_ENGINE = re.compile(r"^\s*(from|import) (vllm|sglang|lmdeploy|aphrodite)\b", re.MULTILINE)
#: What a request brings along itself: it has to be copied to the device once.
_OWN_INPUT = re.compile(r"(\w+_)?pixel_values(_\w+)?|(concat_|raw_|input_)?(images|audios|videos|waveforms)")
#: Samples of reinforcement learning, drawn with their probabilities.
_ROLLOUT = re.compile(r"(^|_)rollout(_|$)")
#: The form in plain PyTorch of what has a kernel beside it: ``positions_torch`` and ``positions_triton``.
_PLAIN = re.compile(r"(\w+)_(torch|pytorch|native)$")
#: A test whether the data is as a kernel wants it, or what the kernel has given.
_ASKS_FOR_KERNEL = re.compile(r"\bis_cuda\b|(\b|_)fused(_ok\(|_\w*kernels?\(| is not None)|_op is not None")
#: Files and classes whose purpose is that weights leave the device: what moves and what is flushed is asked for.
_OFFLOADS = re.compile(r"offload|residency|onload")
#: A model's own: ``image_sizes=MultiModalFieldConfig.batched("image", keep_on_cpu=True)``.
_KEPT_FIELD = re.compile(r"\b(\w+)[\"']?\s*[=:]\s*MultiModalFieldConfig\.\w+\((?:[^()]|\([^()]*\))*\bkeep_on_cpu=True")
#: Methods that give a copy of an object on the host, asynchronously as a rule: its others work on that copy.
_TO_HOST = re.compile(r"_?(to|copy_to)_(cpu|host)(_\w+)?")


def weighed(rule: str, candidate: Candidate, view: FunctionView, file: FileView) -> Candidate:
    """The candidate, at low confidence where its cost does not show."""
    if candidate.confidence is Confidence.LOW or not _negligible(rule, candidate, view, file):
        return candidate
    return replace(candidate, confidence=Confidence.LOW)


def counts_anywhere(rule: str) -> bool:
    """Whether what a rule finds may count where requests never come."""
    return rule == _FLUSHES


def _negligible(rule: str, candidate: Candidate, view: FunctionView, file: FileView) -> bool:
    path = candidate.frequency.path
    if is_template(view.path):
        return True
    if rule != _FLUSHES and beside_service(view, candidate.node, candidate.frequency):
        return True
    if candidate.frequency.known and path and not _walks(rule, candidate):
        # where a program's own loop over its items is seen, each of them pays
        counted = whole_program(candidate.frequency) and Level.ITEM in path
        if _SINGLE.fullmatch(rule) and not counted and _once_an_item(path, candidate.node, view):
            return True
        if _SINGLE.fullmatch(rule) and _beside_generation(candidate.frequency, view):
            return True
        if rule == "AWP101" and _read_of_the_prompt(candidate.frequency):
            return True
        if rule == "AWP301" and _beside_a_step(path):
            return True
        if rule == "AWP306" and _small_beside_a_layer(candidate):
            return True
        if rule in ("AWP302", "AWP303") and path == (Level.REQUEST,) and candidate.frequency.chain:
            return True  # calls lead there: it stands before or after all layers
        if rule in ("AWP203", "AWP306", "AWP501") and Level.STEP in path and not _in_a_layer(path):
            return True
        if rule == "AWP303" and Level.TOKEN in path and not _in_a_layer(path):
            return True
        if rule == "AWP105" and not counted and _ONE_AN_ITEM.issuperset(path) and Level.ITEM in path:
            return True
        if _SMALL.match(rule) and _beside_denoising(rule, candidate.frequency, view):
            return True
    if rule in _MOVES and _stays_moved(candidate.node, view):
        return True
    if rule[3] == "1" and wait_allowed(candidate.node, view):
        return True
    if rule[3] in "16" and wait_weighed(candidate.node, view, file):
        return True
    if called_export(candidate.node, view, file) or called_debugging(view, file):
        return True
    if rule in ("AWP605", "AWP606") and _offloads(candidate.node, view):
        return True
    if rule == "AWP601" and any(map(_OWN_INPUT.fullmatch, behind(candidate.node, view))):
        return True
    if _ROLLOUT.search(view.qualname) and "log_prob" in file.text:
        return True
    if _beside_kernel(view, file) or _declined(candidate.node, view):
        return True
    if rule == "AWP703" and _opens_a_block(view):
        return True
    if rule in ("AWP301", "AWP302", "AWP303") and _after_a_kernel(candidate.node, view):
        return True
    if rule == "AWP702" and view.qualname.endswith(".load_weights"):
        return True  # engines put the whole model into that mode once its weights are there
    if called_fallback(candidate.node, view, file) or _in_a_spare(candidate.frequency, view):
        return True
    if _left_over(candidate.frequency, view, file):
        return True
    if rule in _READS and _beside_a_read(candidate.node, view):
        return True
    return rule[3] in "16" and (
        _ASIDE.search(view.path) is not None
        or called_host(behind(candidate.node, view), view, file)
        or _has_host_twin(candidate.node, view, file)
        or (_of_engine(view, file) and _kept_on_host(candidate.node, view, file))
    )


def _of_engine(view: FunctionView, file: FileView) -> bool:
    """Whether a file belongs to a serving engine, whose processors make the sizes of inputs and keep them there."""
    if "vllm/" in view.path:
        return True
    known: bool | None = file.memo.get(_of_engine)
    if known is None:
        known = file.memo[_of_engine] = _ENGINE.search(file.text) is not None
    return known


def _after_a_kernel(node: ast.AST, view: FunctionView) -> bool:
    """Whether a node is what is left of a function where the kernel that it tries first cannot do it: behind
    ``if x.is_cuda and …: return fused_norm(x)``."""
    body = getattr(view.node, "body", ())
    for earlier in body if isinstance(body, list) else ():
        if earlier.end_lineno >= getattr(node, "lineno", 0):
            return False
        if isinstance(earlier, ast.If) and not earlier.orelse and isinstance(earlier.body[-1], ast.Return):
            given = earlier.body[-1].value
            if isinstance(given, ast.Call | ast.Name) and _ASKS_FOR_KERNEL.search(ast.unparse(earlier.test)):
                return True
    return False


def _opens_a_block(view: FunctionView) -> bool:
    """Whether a function is a context manager: who opens it wants what it sets, for the time of a block."""
    decorators = getattr(view.node, "decorator_list", ())
    return any(ast.unparse(decorator).endswith("contextmanager") for decorator in decorators)


def _declined(node: ast.AST, view: FunctionView) -> bool:
    """Whether a node stands where a kernel that was tried gave nothing: ``if out is None:`` after ``try_it(…)``."""
    child = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.If) and child in parent.body and isinstance(parent.test, ast.Compare):
            test = parent.test
            missing = isinstance(test.ops[0], ast.Is) and ast.unparse(test.comparators[0]) == "None"
            made = binding(test.left, view) if missing else None
            if made is not None and isinstance(made[0], ast.Call) and callee(made[0]).lstrip("_").startswith("try_"):
                return True
        child = parent
    return False


def _beside_kernel(view: FunctionView, file: FileView) -> bool:
    """Whether a function is named as the plain form of another of its file that launches a kernel."""
    found = _PLAIN.fullmatch(view.qualname)
    if found is None:
        return False
    names: frozenset[str] | None = file.memo.get(_beside_kernel)
    if names is None:
        names = file.memo[_beside_kernel] = frozenset(v.qualname for v in file.functions())
    return any(f"{found.group(1)}_{kind}" in names for kind in ("triton", "cuda", "kernel", "fused"))


def _offloads(node: ast.AST, view: FunctionView) -> bool:
    """Whether a node stands in code that moves weights between host and device by plan."""
    if _OFFLOADS.search(view.path) or _OFFLOADS.search(view.qualname.lower()):
        return True
    return any(
        isinstance(parent, ast.If) and _OFFLOADS.search(ast.unparse(parent.test)) for parent in ancestors(view, node)
    )


def _beside_a_read(node: ast.AST, view: FunctionView) -> bool:
    """Whether a read says where something is put that the same statement brings to the host before: once the device is
    idle, another number costs next to nothing."""
    statement = node if isinstance(node, ast.stmt) else view.statement(node)
    if not isinstance(statement, ast.Assign) or any(part is node for part in ast.walk(statement.value)):
        return False
    calls = (part for part in ast.walk(statement.value) if isinstance(part, ast.Call))
    return any(callee(call) in _BRINGS and isinstance(call.func, ast.Attribute) for call in calls)


def _left_over(frequency: Frequency, view: FunctionView, file: FileView) -> bool:
    """Whether a class, or one of its file that calls it, is named nowhere but where it is defined, in the whole
    package, and its file says that it is not for others."""
    methods = [view.qualname, *(frame.function for frame in frequency.chain if frame.path == view.path)]
    classes = {cls for cls, dot, _ in (method.partition(".") for method in methods) if dot}
    return any(_named_once(cls, file) and file.is_spare(cls) for cls in classes)


def _named_once(cls: str, file: FileView) -> bool:
    """Whether a class is named once in its file, and is handed to nothing where it is defined: to a decorator, or to
    what takes keywords of classes."""
    counts: Counter[str] | None = file.memo.get(_named_once)
    if counts is None:
        counts = file.memo[_named_once] = Counter(re.findall(r"\w+", file.text) if "__all__" in file.text else ())
    if counts[cls] != 1 or counts["globals"] or "sys.modules" in file.text:
        return False
    own = [s for s in file.tree.body if isinstance(s, ast.ClassDef) and s.name == cls]
    return len(own) == 1 and not own[0].decorator_list and not own[0].keywords


def _in_a_spare(frequency: Frequency, view: FunctionView) -> bool:
    """Whether it is, or is called by, the plain form of an operator that has kernels: ``forward_native`` of vLLM is
    compiled with the model around it, or runs where there is no kernel."""
    return "vllm/" in view.path and any(
        name.endswith(".forward_native") for name in (view.qualname, *(f.function for f in frequency.chain))
    )


def _has_host_twin(node: ast.AST, view: FunctionView, file: FileView) -> bool:
    """Whether a method reads a part of its own object, whose class has a method that brings all of it to the host."""
    if view.class_name is None or view.qualname.endswith(".__init__"):
        return False
    own, _, name = view.qualname.rpartition(".")
    if _TO_HOST.fullmatch(name) or not any(
        isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self"
        for part in ast.walk(node)
    ):
        return False
    methods: frozenset[str] | None = file.memo.get(_has_host_twin)
    if methods is None:
        methods = file.memo[_has_host_twin] = frozenset(v.qualname for v in file.functions())
    return any(m.startswith(f"{own}.") and _TO_HOST.fullmatch(m[len(own) + 1 :]) for m in methods)


def _kept_on_host(node: ast.AST, view: FunctionView, file: FileView) -> bool:
    """Whether a value comes from a multi-modal input that vLLM never moves to the device."""
    fields = file.memo.get(_kept_on_host)
    if fields is None:
        fields = file.memo[_kept_on_host] = frozenset(_KEPT_FIELD.findall(file.text))
    return any(name in fields or _KEPT_ON_HOST.fullmatch(name) for name in behind(node, view))


def behind(node: ast.AST, view: FunctionView) -> set[str]:
    """The names and keys that the value of an expression goes back to, through assignments and loops."""
    found: set[str] = set()
    loops = view.loops(node)
    waiting: list[ast.AST] = [node]
    while waiting:
        for name in _names_and_keys(waiting.pop()) - found:
            found.add(name)
            for statement in view.assignments(name):
                if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                    waiting.append(statement.value)
            waiting.extend(loop.iter for loop in loops if not isinstance(loop, ast.While) and _binds(loop.target, name))
    return found


def _names_and_keys(node: ast.AST) -> set[str]:
    """Names, and what dictionaries are asked for: ``kwargs.pop("image_sizes")``."""
    found = set()
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Subscript) and not isinstance(part.slice, ast.Constant):
            part = part.value  # where it is cut is another matter
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.isidentifier():
            found.add(part.value)
        waiting.extend(ast.iter_child_nodes(part))
    return found


def _binds(target: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target))


def _walks(rule: str, candidate: Candidate) -> bool:
    if rule != "AWP306":
        return False
    told = _TOLD_WALKS.search(candidate.message) or _WALKS.search(ast.unparse(candidate.node))
    return told is not None


def _once_an_item(path: tuple[Level, ...], node: ast.AST, view: FunctionView) -> bool:
    """Whether a statement runs once a request or a batch, or once an item without a loop of its own over them."""
    if path == (Level.REQUEST,):
        return True
    if path != (Level.REQUEST, Level.ITEM):
        return False
    loops = list(view.loops(node))
    batches = [not isinstance(loop, ast.While) and over_batches(loop) for loop in loops]
    return all(batches) if loops else view.frequency(view.node).path == path


def _small_beside_a_layer(candidate: Candidate) -> bool:
    """Whether something small is made anew in a layer that calls show to run on a whole input, not on one token."""
    path = candidate.frequency.path
    if _WITHIN_STEPS.isdisjoint(path):
        return True
    stepped = Level.TOKEN in path
    if not stepped and isinstance(candidate.node, ast.Call) and callee(candidate.node) in _PUTS_TOGETHER:
        return True
    return bool(candidate.frequency.chain) and not stepped and not _large_table(candidate)


def _large_table(candidate: Candidate) -> bool:
    """Whether it is the cosines of all positions, or a triangle whose size the code does not give in numbers."""
    if _COSINES in candidate.message:
        return True
    return _TRIANGLE.search(ast.unparse(candidate.node)) is not None and any(
        isinstance(part, ast.Name | ast.Attribute)
        for call in ast.walk(candidate.node)
        if isinstance(call, ast.Call) and callee(call) in _FILLED and call.args
        for part in ast.walk(call.args[0])
    )


def _beside_a_step(path: tuple[Level, ...]) -> bool:
    """Whether one small kernel lies beside all that a step of a model does."""
    return _WITHIN_STEPS.isdisjoint(path) and not (Level.TOKEN in path or Level.LOOP in path)


def _in_a_layer(path: tuple[Level, ...]) -> bool:
    return Level.LAYER in path or Level.EXPERT in path


def _beside_denoising(rule: str, frequency: Frequency, view: FunctionView) -> bool:
    """Whether a diffusion pipeline does it a few times a request, before or after all the steps of its model, or, if it
    is small beside a layer, in a part that is run once a request: a vocoder."""
    few = {*_FEW, Level.LAYER} if rule == "AWP301" else _FEW
    if not frequency.path or not few.issuperset(_prepared(frequency, view)):
        return False
    if any(base.endswith("DiffusionPipeline") for base in view.class_bases):
        return True
    first = frequency.chain[0] if frequency.chain else None
    return first is not None and "diffusers" in first.path and bool(_PIPELINE.search(first.function))


def _beside_generation(frequency: Frequency, view: FunctionView) -> bool:
    """Whether ``generate`` or what it calls does it once an item, before or after all the tokens of it."""
    if frequency.path[-1] is not Level.ITEM or not _FEW.issuperset(frequency.path):
        return False
    names = [name.rpartition(".")[2] for name in (*(frame.function for frame in frequency.chain), view.qualname)]
    return "forward" not in names and any(name.startswith("generate") for name in names)


def _read_of_the_prompt(frequency: Frequency) -> bool:
    """Whether a model reads something once an image or row of what it is given, before all the tokens of a request."""
    if frequency.path not in ((Level.REQUEST, Level.ITEM), (Level.REQUEST, Level.LOOP)) or not frequency.chain:
        return False
    first = frequency.chain[0]
    return first.line == 0 and first.function.endswith(".generate")


def _prepared(frequency: Frequency, view: FunctionView) -> tuple[Level, ...]:
    """The path, without the frames that a method goes through which makes what a request begins with."""
    entered = view.frequency(view.node)
    once = _PREPARES.fullmatch(view.qualname.rpartition(".")[2]) and Level.STEP not in entered.path
    return tuple(level for level in frequency.path if not (once and level in (Level.STEP, Level.ELEMENT)))


def _stays_moved(node: ast.AST, view: FunctionView) -> bool:
    """``self.table = self.table.to(device)``: a copy on the first call alone."""
    statement = node if isinstance(node, ast.stmt) else view.statement(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    if not isinstance(target, ast.Attribute):
        return False
    name = ast.unparse(target)
    return any(isinstance(part, ast.Attribute) and ast.unparse(part) == name for part in ast.walk(statement.value))
