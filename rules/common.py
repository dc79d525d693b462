"""What several rules ask: is it hot, does it count, how sure, and how to say it to a person."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Sequence

from awp_lint.detector.finding import Confidence, Frame
from awp_lint.detector.semantics.definition import child_nodes
from awp_lint.detector.semantics.values import Certainty, Device, Value
from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView, Level, Region

#: Code that serves nobody: its cost is wanted or does not matter.
IDLE = Region.TEST | Region.TRAINING | Region.TIMED | Region.DEBUG | Region.ERROR | Region.EXPORT

_EACH = {
    Level.REQUEST: "once a request",
    Level.STEP: "at every step",
    Level.TOKEN: "for every token",
    Level.LAYER: "in every layer",
    Level.EXPERT: "for every expert",
    Level.ITEM: "for every item of the batch",
    Level.ELEMENT: "for every element",
    Level.LOOP: "in every pass of the loop",
}
_OF = {
    Level.REQUEST: "request",
    Level.STEP: "step",
    Level.TOKEN: "token",
    Level.LAYER: "layer",
    Level.EXPERT: "expert",
    Level.ITEM: "item",
    Level.ELEMENT: "element",
    Level.LOOP: "pass",
}


def hot_frequency(view: FunctionView, node: ast.AST) -> Frequency | None:
    """How often a node runs, where that may matter: None for set-up, once-a-request and code that serves nobody."""
    if view.regions(node) & IDLE:
        return None
    frequency = view.frequency(node)
    if frequency.known and not frequency.hot:
        return None
    return frequency


def served_frequency(view: FunctionView, node: ast.AST) -> Frequency | None:
    """As :func:`hot_frequency`, once a request included."""
    if view.regions(node) & IDLE:
        return None
    frequency = view.frequency(node)
    if frequency.known and not frequency.served:
        return None
    return frequency


def judge(frequency: Frequency, *values: Value, cap: Confidence = Confidence.HIGH) -> Confidence:
    """Everything proven is high, something assumed or ambient is medium, something unknown is low."""
    sure = min([frequency.certainty, *map(device_certainty, values)])
    result = {Certainty.PROVEN: Confidence.HIGH, Certainty.ASSUMED: Confidence.MEDIUM}.get(sure, Confidence.LOW)
    return lower(result, cap)


def device_certainty(value: Value) -> Certainty:
    """How sure it is that a tensor lives on the accelerator."""
    if not value.on_device:
        return Certainty.UNKNOWN
    if value.device is Device.AMBIENT:
        return min(value.certainty, Certainty.ASSUMED)
    return value.certainty


def sureness(view: FunctionView, node: ast.AST, frequency: Frequency, *values: Value) -> Confidence:
    """As :func:`judge`; low on the other branch of a switch between implementations, where a modulo decides, where data
    is prepared on the host, and in what only training or an error message needs."""
    confidence = judge(frequency, *values)
    if confidence is Confidence.LOW:
        return confidence
    aside = prepares_on_host(view) or any(map(through_host, frequency.chain)) or beside_service(view, node, frequency)
    return Confidence.LOW if aside or occasional(view, node) else confidence


def may_be_sure(view: FunctionView) -> bool:
    """Whether :func:`sureness` may say more than low anywhere in the definition."""
    return not prepares_on_host(view) and serves_somebody(view)


def serves_somebody(view: FunctionView) -> bool:
    """Whether :func:`beside_service` leaves anything of the definition."""
    return not _serves_nobody(view)


def runs_often(view: FunctionView) -> bool:
    """Whether anything in the definition may run more often than once a request."""
    return view.frequency(view.node).path not in ((), (Level.REQUEST,)) or has_loops(view)


def beside_service(view: FunctionView, node: ast.AST, frequency: Frequency) -> bool:
    """Whether a node stands where requests rarely come: the other branch of a switch, what only training or an error
    message needs, what objects do when they are made."""
    return bool(view.regions(node) & Region.FALLBACK) or _serves_nobody(view) or _through_constructor(view, frequency)


_HOST_FILES = re.compile(
    r"(^|/)((image|video)_processing|processing|feature_extraction|tokenization)_\w+\.py$"
    r"|(^|/)multimodal/(process(ing|ors?)/|inputs\.py$|hasher\.py$|parse\.py$)|(^|/)transformers_utils/processors/"
    r"|(^|/)vllm/v1/core/|(^|/)preprocessor\.py$"
    r"|(^|/)data(sets?)?/(augment(ations?)?|base|build|loaders?|dataset|transforms?)\.py$"
)
_HOST_NAME = re.compile(r"(^|_)(cpu|np|numpy|host)_\w|_(cpu|np|numpy|host)$")
_VENDORED = re.compile(r"(^|/)(third_party|_?vendor(ed)?|extern(al)?s?)/")
_EXPORTING = re.compile(r"(^|/)(executorch|onnx\w*|_?export(er|ers|ing)?|openvino|tflite|coreml)(/|\.py$)")
_PREPARING = re.compile(r"(^|/)datasets?/(.+/)?(process|prepare|preprocess|convert)_\w+\.py$")
_RARE = re.compile(
    r"dummy|rebalanc|rearrang|warm_?up|_build_plan$|diagnos|visuali[sz]|finali[sz]e_weights|(^|_)capture(_|$)"
    r"|(^|_)(loss(es)?|plot)(_|$)|_nans?(_|$)|_first_(launch|run|call|sight)$|^_?compile_|(^|_)teardown(_|$)"
)
_TRAINING_CLASSES = re.compile(r"(Loss|Matcher|Criterion|Trainer)(\.|$)|Training|Pretrain(ing)?(Model|Module)?(\.|$)")


_HOST_CLASSES = re.compile(
    r"(Multi[Mm]odal|Image|Video|Audio|Feature)\w*(Processor|Extractor)(\.|$)"
    r"|\w(ProcessingInfo|DataParser|DummyInputs\w*)\.|(DataLoader|Dataset)\."
)


_HOST_BACKENDS = re.compile(r"(?<![A-Z])CPU(?![A-Za-z]*(GPU|Gpu))[A-Za-z_]*\.|[a-z]C(PU|pu)\.")


def through_host(frame: Frame) -> bool:
    """Whether a call on the way here is a processor's, or of the class of a server that runs models on the CPU."""
    return bool(_HOST_CLASSES.search(frame.function) or _HOST_BACKENDS.search(frame.function))


def prepares_on_host(view: FunctionView) -> bool:
    """Processors and tokenizers by file or class: what model code takes for a device tensor is on the host there."""
    if _named_for_host(view.path, view.qualname):
        return True
    if _gives_bytes(view.node):
        return True
    if view.qualname.endswith((".preprocess", ".postprocess")):  # transformers moves a pipeline's results to the host
        return any(base.rpartition(".")[2] == "Pipeline" for base in view.class_bases)
    return view.qualname.endswith(("_cpu", "_np", "_numpy", "_host"))


@functools.lru_cache(maxsize=4096)
def _named_for_host(path: str, qualname: str) -> bool:
    return _host_file(path) or _HOST_CLASSES.search(qualname) is not None


@functools.lru_cache(maxsize=64)
def _host_file(path: str) -> bool:
    return _HOST_FILES.search(path) is not None


def _gives_bytes(node: ast.AST) -> bool:
    """Whether a function is declared to give the bytes of something or an array: its data has to be on the host for
    that."""
    returns = getattr(node, "returns", None)
    if isinstance(returns, ast.Attribute):
        return returns.attr == "ndarray" and isinstance(returns.value, ast.Name) and returns.value.id in ("np", "numpy")
    return isinstance(returns, ast.Name) and returns.id in ("bytes", "bytearray", "memoryview")


def host_named(node: ast.AST) -> bool:
    """Whether an expression speaks of a value that its name puts on the host: ``seq_lens_cpu[0].item()``."""
    functions = {id(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
    for part in ast.walk(node):
        if id(part) in functions:
            continue
        name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
        if _HOST_NAME.search(name):
            return True
    return False


def _through_constructor(view: FunctionView, frequency: Frequency) -> bool:
    """Whether the calls that lead here pass a constructor: what objects do when they are made is mostly set-up."""
    if view.qualname.endswith("Cache.__init__"):
        return True  # of a request's cache, filled from elsewhere
    return any(frame.function.endswith("__init__") for frame in frequency.chain[1:])


def _serves_nobody(view: FunctionView) -> bool:
    """Training, export, a copy of somebody else's code, what runs now and then, or the text of an error message."""
    if isinstance(view.node, ast.Lambda) and isinstance(view.node.body, ast.JoinedStr):
        return True
    return _named_for_nobody(view.path, view.qualname)


@functools.lru_cache(maxsize=4096)
def _named_for_nobody(path: str, qualname: str) -> bool:
    if _file_for_nobody(path) or _RARE.search(qualname.rpartition(".")[2]):
        return True
    return bool(_TRAINING_CLASSES.search(qualname))


@functools.lru_cache(maxsize=64)
def _file_for_nobody(path: str) -> bool:
    return bool(_VENDORED.search(path) or _EXPORTING.search(path) or _PREPARING.search(path))


def whole_program(frequency: Frequency) -> bool:
    """Whether the calls that lead here begin in a program of the project's own: all its callers are there to see, and
    nothing else decides how often it runs. Scripts beside a library, which lead anywhere by the names of methods, have
    to prove it."""
    if not frequency.known or not frequency.chain:
        return False
    first = frequency.chain[0].function
    return first == "main" or (first == "<module>" and frequency.certainty is Certainty.PROVEN)


def per_item_only(frequency: Frequency) -> bool:
    """Whether a statement is hot only since a request has several items: once an item is not much for a copy, unless
    the program itself has the loop over the items."""
    if whole_program(frequency) and Level.ITEM in frequency.path:
        return False
    return frequency.known and all(level in (Level.REQUEST, Level.ITEM, Level.LOOP) for level in frequency.path)


def converts_argument(view: FunctionView, node: ast.AST) -> bool:
    """Whether a node stands where an argument turned out not to be a tensor: ``if not torch.is_tensor(t):``."""
    child = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.If | ast.IfExp) and child is not parent.test and _asks_for_tensor(parent.test):
            return True
        child = parent
    return False


def _asks_for_tensor(test: ast.expr) -> bool:
    for part in ast.walk(test):
        if isinstance(part, ast.Call):
            name = callee(part)
            if name == "is_tensor" or (name == "isinstance" and len(part.args) == 2):
                return True
    return False


def occasional(view: FunctionView, node: ast.AST) -> bool:
    """Whether the node runs every few passes only: below ``if step % 16 == 0``, behind ``step % 16 == 0 and``, or where
    a sequence has ended: behind ``if not found_eos: continue``."""
    child = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.If) and child is not parent.test and _seldom(parent, child):
            return True
        if isinstance(parent, ast.For | ast.While) and any(map(_left_unless_ended, _before(child, parent.body))):
            return True
        if isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.And):
            earlier = parent.values[: parent.values.index(child)] if child in parent.values else []
            if any(map(_modulo, earlier)):
                return True
        child = parent
    return False


def _seldom(branch: ast.If, child: ast.AST) -> bool:
    return _modulo(branch.test) or (child in branch.body and _has_ended(branch.test))


def _before(child: ast.AST, body: list[ast.stmt]) -> list[ast.stmt]:
    return body[: body.index(child)] if isinstance(child, ast.stmt) and child in body else []


_ENDED = re.compile(r"(\w+_)?(eos|eot)(_\w+)?(?<!_id)(?<!_ids)(?<!_token)(?<!_tokens)|(is|has|just)_(finished|ended)")


def _has_ended(test: ast.expr) -> bool:
    """``if found_eos:``, a flag that says that a sequence has just ended."""
    return isinstance(test, ast.Name) and _ENDED.fullmatch(test.id) is not None


def _left_unless_ended(statement: ast.AST) -> bool:
    if not (isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Continue) and not statement.orelse):
        return False
    test = statement.test
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and _has_ended(test.operand)


def _modulo(test: ast.AST) -> bool:
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) for part in ast.walk(test))


def lower(*levels: Confidence) -> Confidence:
    """The least of several confidences."""
    return min(levels, key=lambda level: level.order)


def maybe_device(value: Value) -> bool:
    """A tensor that is not known to live on the host."""
    return value.is_tensor and value.device is not Device.HOST


def callee(call: ast.Call) -> str:
    """The last part of what is called: ``item`` of ``x.item()``, "" where it has no name."""
    func = call.func
    return func.attr if func.__class__ is ast.Attribute else getattr(func, "id", "")


def often(frequency: Frequency) -> str:
    """How often, in words: ``in every layer of every step``; empty where nothing is known."""
    if not frequency.known:
        return ""
    path = [level for level in frequency.path if level not in (Level.REQUEST, Level.LOOP)]
    if not path:
        return _EACH[frequency.path[-1]] if frequency.path else ""
    words = _EACH[path[-1]]
    if len(path) > 1:
        words += f" of every {_OF[path[-2]]}"
    return words


def short(node: ast.AST, limit: int = 60) -> str:
    """The code of a node on one line, cut where it is long."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def reasons(value: Value, node: ast.AST) -> tuple[str, ...]:
    """Why a value is what it is, for the finding's ``why``."""
    kind = {Device.ACCELERATOR: "on the accelerator", Device.AMBIENT: "where the model is"}.get(value.device)
    if not value.is_tensor or kind is None:
        return ()
    first = f"`{short(node)}` is a tensor {kind}"
    if value.reasons:
        first += ": " + ", ".join(f"{reason.text} (line {reason.line})" for reason in value.reasons[:2])
    return (first,)


def frequency_reason(frequency: Frequency) -> tuple[str, ...]:
    """The frequency and the chain that leads to it."""
    if not frequency.known:
        return ("how often it runs is not known: no caller was found",)
    text = f"runs {frequency}"
    if frequency.chain:
        text += ": " + " → ".join(f"{frame.function} ({frame.path}:{frame.line})" for frame in frequency.chain)
    return (text,)


def method(call: ast.Call) -> tuple[ast.expr, str] | None:
    """Receiver and name of ``receiver.name(...)``."""
    if isinstance(call.func, ast.Attribute):
        return call.func.value, call.func.attr
    return None


def argument(call: ast.Call, position: int | None, name: str) -> ast.expr | None:
    """An argument by position or keyword; None where it is missing or hidden behind a star."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if position is not None and position < len(call.args):
        plain = call.args[: position + 1]
        if not any(isinstance(a, ast.Starred) for a in plain):
            return call.args[position]
    return None


def opaque(call: ast.Call) -> bool:
    """Whether the call has ``*args`` or ``**kwargs``, which may hold anything."""
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)


def open_ended(view: FunctionView, node: ast.AST) -> bool:
    """Whether a node stands in a ``while`` loop that goes on by what its passes find."""
    loops = [loop for loop in view.loops(node) if isinstance(loop, ast.While)]
    return any(names_in(loop.test) & view.written_in(loop) for loop in loops)


def names_in(node: ast.AST) -> frozenset[str]:
    """Names that are read in an expression."""
    return frozenset(name.id for name in _names(node) if name.ctx.__class__ is ast.Load)


def target_names(target: ast.AST) -> frozenset[str]:
    """Names that an assignment target binds."""
    return frozenset(name.id for name in _names(target) if name.ctx.__class__ is not ast.Load)


def _names(node: ast.AST) -> Iterator[ast.Name]:
    """All names in an expression, in no order: ``ast.walk`` at a third of its cost."""
    pending = [node]
    while pending:
        part = pending.pop()
        kind = part.__class__
        if kind is ast.Name:
            yield part  # type: ignore[misc]
        elif kind is ast.Attribute:
            pending.append(part.value)  # type: ignore[attr-defined]
        elif kind is not ast.Constant:
            pending += child_nodes(part)


def ancestors(view: FunctionView, node: ast.AST) -> Iterator[ast.AST]:
    """Enclosing nodes within the definition, innermost first."""
    parent = view.parent(node)
    while parent is not None:
        yield parent
        parent = view.parent(parent)


def assigned_name(view: FunctionView, node: ast.AST) -> str | None:
    """The plain local name that takes the value of an expression: ``name = <node>`` (brackets ignored)."""
    parent = view.parent(node)
    if isinstance(parent, ast.Assign) and parent.value is node and len(parent.targets) == 1:
        target = parent.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    if isinstance(parent, ast.AnnAssign | ast.NamedExpr) and parent.value is node:
        return parent.target.id if isinstance(parent.target, ast.Name) else None
    return None


def has_loops(view: FunctionView) -> bool:
    """Whether the definition holds a loop of any kind."""
    return bool(view.nodes(ast.For, ast.AsyncFor, ast.While, ast.comprehension))


def loop_body(loop: ast.AST) -> Sequence[ast.AST]:
    """What runs at every pass of a loop."""
    if isinstance(loop, ast.While):
        return [loop.test, *loop.body]
    if isinstance(loop, ast.For | ast.AsyncFor):
        return loop.body
    return [loop]


def own_text(view: FunctionView, file: FileView) -> str:
    """The source lines of a definition. ``ast.get_source_segment`` would split the whole file for every call."""
    node = view.node
    if isinstance(node, ast.Module) or node.end_lineno is None:
        return file.text
    return "\n".join(lines_of(file.text)[node.lineno - 1 : node.end_lineno])


@functools.lru_cache(maxsize=2)
def lines_of(text: str) -> list[str]:
    """The lines of a text, counted as ``ast`` does for all but form feeds."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
