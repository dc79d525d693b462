"""What surrounds a statement: inference mode, compiled code, guards, tests, training, timing, error paths.

Decided by syntax and names. A region of a definition (its decorators, its name, its file) holds for all of it; a region
of a block holds below the ``if``, ``with`` or ``except`` that opens it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from awp_lint.detector.semantics.definition import Definition, descendants, is_none
from awp_lint.detector.semantics.once import last_name
from awp_lint.detector.semantics.view import Region

#: Dotted names of decorators and context managers, to the region they open.
_OPENERS: dict[str, Region] = {
    "torch.no_grad": Region.INFERENCE,
    "torch.inference_mode": Region.INFERENCE,
    "torch.autograd.no_grad": Region.INFERENCE,
    "torch.autograd.grad_mode.no_grad": Region.INFERENCE,
    "torch.autograd.inference_mode": Region.INFERENCE,
    "torch.compile": Region.COMPILED,
    "torch._dynamo.optimize": Region.COMPILED,
    "torch.jit.script": Region.COMPILED,
    # The loop over experts that the decorated class holds is the reference beside grouped and batched kernels.
    "transformers.integrations.use_experts_implementation": Region.FALLBACK,
    "transformers.integrations.moe.use_experts_implementation": Region.FALLBACK,
    "torch.jit.script_method": Region.COMPILED,
    "torch.jit.script_if_tracing": Region.COMPILED,
    "torch.cuda.graph": Region.CAPTURED,
    "torch.cuda.make_graphed_callables": Region.CAPTURED,
    "vllm.compilation.decorators.support_torch_compile": Region.COMPILED,
    # what is traced into a kernel runs on the device itself
    "triton.jit": Region.EXPORT,
    "helion.kernel": Region.EXPORT,
    "cutlass.cute.jit": Region.EXPORT,
    "cutlass.cute.kernel": Region.EXPORT,
}

#: The decorator above, which is called as a function, too: ``use_experts_implementation(experts_class=Experts, …)``.
_SWITCHING = re.compile(r"\buse_experts_implementation\(([^()]*)\)")

_TEST_PATH = re.compile(
    r"(^|/)(tests?|testing|unittests?|(torch)?metrics)/"
    r"|(^|/)(test_[^/]*|[^/]*_test|conftest|testing_utils|testing)\.py$"
    r"|(^|/)(evaluat(e|ion|ors?)/|([^/]*_)?evaluate(_[^/]*)?\.py$)"
)
_BENCH_PATH = re.compile(
    r"(^|/)(benchmarks?|profiling|perf)/|(^|/)(bench(mark)?s?_[^/]*|[^/]*_bench(mark)?|benchmarks?)\.py$"
)
_BENCH_NAME = re.compile(
    r"(^|_)(bench(mark(s|er|ing)?)?|profile|profiling|timeit|timing|warm_?up|latency|throughput|dummy_run|profile_run)(_|$)"
)
_TRAIN_NAME = re.compile(
    r"(^|_)(train|training|fit|finetune|fine_tune|backward|validation_step)(_|$)|compute_loss|_loss$|^loss_"
)
_TRAIN_PATH = re.compile(
    r"(^|/)(train(ing|er)?|trainers?|finetune|fine_tuning|losses|loss|(auto)?augment(ations?|er)?)(/|\.py$|_[^/]*\.py$)"
    r"|(^|/)(trainer_[^/]*|train_[^/]*|[^/]*_trainer)\.py$"
    r"|(^|/)([^/]*_)?(finetune|grpo|ppo|dpo|sft|rlhf)(/|\.py$|_[^/]*\.py$)"
)

#: Classes that do something to what a model is trained with, and pass it on as it is afterwards.
_TRAINED_WITH = re.compile(
    r"_?\w*(Augment(er|ation)?s?|AugMix|Dropout(\dd)?|DropPath|StochasticDepth|SpecAug\w*)|MaskAlongAxis\w*|TimeWarp(ing)?|(Time|Freq(uency)?)Mask(ing)?"
    r"|Rand(om)?\w*(Crop|Flip|Rotat\w+|Affine|Perspective|Eras\w+|Gr[ae]yscale|Jitter|Resize\w*|Noise|Blur|Sharpness"
    r"|Equalize|Invert|Posterize|Solarize|AutoContrast|Apply|Choice|Order|Transforms?|Zoom\w*|Shift\w*|Gamma|Contrast"
    r"|Brightness|Hue|Saturation|Elastic\w*|Shear|Translate)"
)

_DEVICES = frozenset(("cuda", "cpu", "mps", "npu", "xpu", "hpu", "xla", "meta", "tpu", "musa", "mlu"))
_CLOCKS = re.compile(r"perf_counter(_ns)?|monotonic(_ns)?|time|time_ns|process_time|elapsed_time|record|default_timer")
_DEBUG_WORDS = re.compile(
    r"(^|_)(debug(ging)?|verbose|isenabledfor|assert_enabled|enable_debug|log_stats|dump|trace_\w+|print(_\w+)?)(_|$)"
)
_EXPORT_WORDS = re.compile(
    r"is_tracing|is_scripting|is_in_onnx_export|is_exporting|is_jit_tracing|is_torch_fx_proxy|is_torchdynamo_exporting"
    r"|is_fx_tracing|onnx_trace|exportable|torchscript"
)
_COMPILING_WORDS = re.compile(r"is_compiling|is_torchdynamo_compiling|is_dynamo_compiling")


def file_regions(path: str) -> Region:
    """Regions that a whole file stands in, by its path."""
    found = Region.NONE
    posix = path.replace("\\", "/")
    if _TEST_PATH.search(posix):
        found |= Region.TEST
    if _BENCH_PATH.search(posix):
        found |= Region.TIMED
    if _TRAIN_PATH.search(posix):
        found |= Region.TRAINING
    return found


#: What transformers makes its models of: the generated ``modeling_….py`` beside it runs.
_TEMPLATE = re.compile(r"(^|/)models/\w+/modular_\w+\.py$")


def is_template(path: str) -> bool:
    """Whether nobody imports a file, since another is generated from it."""
    return _TEMPLATE.search(path.replace("\\", "/")) is not None


def definition_regions(definition: Definition, qualified: Callable[[ast.expr], str | None]) -> Region:
    """Regions that hold for the whole definition: decorators, its name, what it does."""
    node = definition.node
    found = Region.NONE
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        for decorator in node.decorator_list:
            found |= opened_by(decorator, qualified)
        found |= name_region(node.name)
        found |= body_region(node.body, qualified)
        found |= _trains(definition)
    if definition.cls is not None:
        for decorator in definition.cls.decorator_list:
            found |= opened_by(decorator, qualified)
        found |= class_region(definition.cls.name)
    return found


def body_region(body: list[ast.stmt], qualified: Callable[[ast.expr], str | None]) -> Region:
    """INFERENCE where a body does its work below ``with torch.no_grad():``, loops and other blocks before it aside."""
    blocks = [statement for statement in body if isinstance(statement, (ast.With, ast.For, ast.While, ast.AsyncFor))]
    if len(blocks) != 1 or not isinstance(blocks[0], ast.With):
        return Region.NONE
    opened = Region.NONE
    for item in blocks[0].items:
        opened |= opened_by(item.context_expr, qualified)
    return opened & Region.INFERENCE


def handed_to_switches(text: str) -> frozenset[str]:
    """Names that a file hands to functions which put other implementations beside a class's own."""
    if "use_experts_implementation(" not in text:  # found a hundred times faster than the pattern
        return frozenset()
    return frozenset(name for given in _SWITCHING.findall(text) for name in re.findall(r"\b[A-Z]\w+", given))


def beside_training(file: Region, own: Region) -> Region:
    """The regions of a file that a definition shares: what runs without gradients does not train, wherever it is."""
    return file & ~Region.TRAINING if own & Region.INFERENCE else file


def name_region(name: str) -> Region:
    """The region that a function's name tells of: test, benchmark, training."""
    found = Region.NONE
    lowered = name.lower()
    if lowered.startswith("test_") or lowered in ("setup_method", "teardown_method"):
        found |= Region.TEST
    if _BENCH_NAME.search(lowered):
        found |= Region.TIMED
    if _TRAIN_NAME.search(lowered):
        found |= Region.TRAINING
    return found


def class_region(name: str) -> Region:
    """The region that a class's name tells of: what is done to images and activations in training alone."""
    return Region.TRAINING if _TRAINED_WITH.fullmatch(name) else Region.NONE


def _trains(definition: Definition) -> Region:
    """TRAINING where gradients are computed or applied."""
    for node in definition.nodes(ast.Call):
        assert isinstance(node, ast.Call)
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr
            receiver = node.func.value
            if name == "backward" and not (isinstance(receiver, ast.Name) and receiver.id == "ctx"):
                return Region.TRAINING
            if name in ("zero_grad", "unscale_") or (
                name == "step" and _ends_in(receiver, ("optimizer", "optim", "lr_scheduler"))
            ):
                return Region.TRAINING
    return Region.NONE


def _ends_in(node: ast.expr, words: tuple[str, ...]) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.lower().endswith(words)


def opened_by(node: ast.expr, qualified: Callable[[ast.expr], str | None]) -> Region:
    """The region that a decorator or context manager opens."""
    target = node.func if isinstance(node, ast.Call) else node
    name = qualified(target)
    if name is None:
        return Region.NONE
    if name in ("functools.partial",) and isinstance(node, ast.Call) and node.args:
        return opened_by(node.args[0], qualified)
    if name == "torch.set_grad_enabled" and isinstance(node, ast.Call) and node.args:
        first = node.args[0]
        return Region.INFERENCE if isinstance(first, ast.Constant) and first.value is False else Region.NONE
    return _OPENERS.get(name, Region.NONE)


def block_region(child: ast.AST, parent: ast.AST, qualified: Callable[[ast.expr], str | None]) -> Region:
    """The region that holds for ``child`` because of where it stands in ``parent``."""
    if isinstance(parent, (ast.With, ast.AsyncWith)):
        found = Region.NONE
        if child in parent.body:
            for item in parent.items:
                found |= opened_by(item.context_expr, qualified)
        return found
    if isinstance(parent, ast.Assert):
        return Region.DEBUG
    if isinstance(parent, ast.Raise):
        return Region.ERROR
    if isinstance(parent, ast.ExceptHandler):
        return Region.FALLBACK | (Region.ERROR if _raises(parent.body) else Region.NONE)
    if isinstance(parent, ast.If):
        if child is parent.test:
            return Region.NONE
        taken = child in parent.body
        found = test_region(parent.test, taken)
        if _raises(parent.body if taken else parent.orelse):
            found |= Region.ERROR
        return found
    if isinstance(parent, ast.IfExp) and child is not parent.test:
        return test_region(parent.test, child is parent.body)
    return Region.NONE


def _raises(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise)


#: What a model is trained towards, by its name; labels that are inputs have other names.
_LABELS = re.compile(
    r"(audio|text|mask|next_sentence|sentence_order|start|end|mc|decoder|token|lm|image|codec|talker)_labels"
)
#: What holds in training alone, of a module, of the whole program or of a tensor.
_TRAINS = frozenset((
    "training", "is_training", "do_train", "is_train", "is_grad_enabled", "gradient_checkpointing", "requires_grad",
))  # fmt: skip
#: Questions whether a kernel can do the work; what runs where it cannot is the way out.
_KERNEL = re.compile(r"(\w+_)?kernels?_(can|is|are|available|supports?)(_\w+)?")
#: Switches that serving leaves off: sharded weights (ZeRO-3, FSDP), rows of a training collator, kernels on request.
_SELDOM = re.compile(
    r"synced_gpus|_?use_flash_attention_2|_?is_packed_sequence|output_router_logits|use_cascade(_attention)?"
)
#: Groups of kernels that are used where somebody chose one of them.
_OTHER_KERNELS = re.compile(r"(FLASH|SAGE|XFORMERS|AITER)\w*_BACKENDS?")
#: What installations of torch bring along: what runs without it is the way out.
_BROUGHT = re.compile(
    r"(_?(has|have|is)_)?(torchvision|triton)(_is)?(_available|_installed)?|_?use_torchvision"
    r"|_?(is_)?pin(ned)?_memory_available"
)
#: What holds while a graph is captured, which is once for all its replays.
_CAPTURES = re.compile(r"(\w+_)?(in_capture|capturing)")
#: A copy on the host that callers hand in: what is done without it is the way out.
_HOST_COPY = re.compile(r"\w+_(cpu|host)(_list|_int)?")
#: What is missing in a run that only measures memory, and where no graphs are captured.
_PREPARED = re.compile(r"((\w+_)?attn_|attention_|forward_)?metadata|(\w+_)?buffers")
#: Questions for the kind of machine that answer no on the usual one.
_OTHER_MACHINE = re.compile(r"_?is_(rocm|hip|xpu|tpu|cpu|npu|hpu|mps|xla|out_of_tree|cpu_only)(_available|_platform)?")


def test_region(test: ast.expr, taken: bool) -> Region:
    """The region of the branch of ``if test:`` (``taken``) or of its ``else`` branch."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test_region(test.operand, not taken)
    if isinstance(test, ast.BoolOp):
        decides = isinstance(test.op, ast.And) == taken  # all parts hold where `and` is taken or `or` is not
        found = Region.NONE
        if isinstance(test.op, ast.And) and not taken and _usual(test.values):
            return Region.FALLBACK
        if decides:
            for part in test.values:
                found |= test_region(part, taken)
        return found
    if isinstance(test, ast.Compare):
        return _compare_region(test, taken)
    name = _asked(test)
    if name is None:
        return Region.NONE
    lowered = name.lower()
    if lowered in _TRAINS:
        return Region.TRAINING if taken else Region.NONE
    if _DEBUG_WORDS.search(lowered):
        return Region.DEBUG if taken else Region.NONE
    if _EXPORT_WORDS.search(lowered):
        return Region.EXPORT if taken else Region.NONE
    if _COMPILING_WORDS.search(lowered):
        return Region.COMPILED if taken else Region.NONE
    if _SELDOM.fullmatch(lowered) or _OTHER_MACHINE.fullmatch(lowered) or _asks_in_vain(test):
        return Region.FALLBACK if taken else Region.NONE
    if _CAPTURES.fullmatch(lowered):
        return Region.FALLBACK if taken else Region.NONE
    if lowered == "is_cuda" and isinstance(test, ast.Attribute) and not taken:  # of a tensor
        return Region.FALLBACK
    if (_KERNEL.fullmatch(lowered) or _BROUGHT.fullmatch(lowered) or lowered == "use_cache") and not taken:
        return Region.FALLBACK  # generation keeps a cache
    return Region.NONE


def _asked(test: ast.expr) -> str | None:
    """The name of what a test asks: that of a setting for ``envs.TRACE_LOGITS.get()``, which other calls ask for it."""
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and not (test.args or test.keywords):
        return last_name(test.func.value if test.func.attr == "get" else test)
    return last_name(test)


#: Questions for libraries that are new enough.
_NEW_ENOUGH = re.compile(r"is_torch_(greater|version|available)\w*|is_\w+_available")


def _usual(parts: list[ast.expr]) -> bool:
    """Whether all of it holds in inference on a GPU: ``x.is_cuda and x.dtype == w.dtype and not is_grad_enabled()``, or
    with a kernel: ``self.flash is not None and x.device.type == "cuda"``."""
    asked = False
    for part in parts:
        negated = isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not)
        name = last_name(part.operand if isinstance(part, ast.UnaryOp) else part) or ""
        if (name == "is_grad_enabled") if negated else (name == "is_cuda" or _on_cuda(part)):
            asked = True
        elif negated or not (_NEW_ENOUGH.fullmatch(name) or _same_type(part) or _has_kernel(part)):
            return False
    return asked


def _on_cuda(test: ast.expr) -> bool:
    """``x.device.type == "cuda"``."""
    return isinstance(test, ast.Compare) and (
        _device_region(test.left, test.ops[0], test.comparators[0], False) is not Region.NONE
    )


#: What holds a kernel that may not be installed.
_HELD_KERNEL = re.compile(r"_?(flash|fused|xformers|triton)\w*|\w*_(flash|kernels?|cuda)")


def _has_kernel(test: ast.expr) -> bool:
    """``self.flash is not None``."""
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot) and len(test.ops) == 1):
        return False
    return _HELD_KERNEL.fullmatch((last_name(test.left) or "").lower()) is not None


def _same_type(test: ast.expr) -> bool:
    """``x.dtype == self.weight.dtype``."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    return last_name(test.left) == last_name(test.comparators[0]) == "dtype"


def _asks_in_vain(test: ast.expr) -> bool:
    """``getattr(streamer, "_takes_logits", False)``: a private mark that objects do not have by themselves."""
    if not (isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "getattr"):
        return False
    if len(test.args) != 3:
        return False
    name, default = test.args[1:]
    marked = isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.startswith("_")
    return marked and isinstance(default, ast.Constant) and not default.value


def _was_handed_in(test: ast.expr) -> bool:
    """``kwargs is not None and (longest := kwargs.pop("longest", None)) is not None``: callers made it before."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        test = test.values[-1]
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot) and len(test.ops) == 1):
        return False
    call = test.left.value if isinstance(test.left, ast.NamedExpr) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("pop", "get")):
        return False
    return isinstance(call.func.value, ast.Name) and call.func.value.id.endswith("kwargs")


def leaves_to_rest(node: ast.stmt) -> Region:
    """The region of what follows ``if test: return`` in the same block."""
    if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], (ast.Return, ast.Raise)):
        if _was_handed_in(node.test) or _leaves_for_cuda(node):
            return Region.FALLBACK
        return test_region(node.test, False) & (Region.FALLBACK | Region.TRAINING)
    return Region.NONE


def _leaves_for_cuda(node: ast.If) -> bool:
    """``if x.device.type == "cuda" and x.dtype in SUPPORTED: return refine_cuda(x)``: the rest is for other devices."""
    last = node.body[-1]
    parts = node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else [node.test]
    if not (isinstance(last, ast.Return) and isinstance(last.value, ast.Call)):
        return False
    called = last_name(last.value.func) or ""
    return called.endswith(("_cuda", "_gpu", "_triton")) and any(
        last_name(part) == "is_cuda" or _on_cuda(part) for part in parts
    )


def _compare_region(test: ast.Compare, taken: bool) -> Region:
    if len(test.ops) != 1:
        return Region.NONE
    left, right = test.left, test.comparators[0]
    if (
        isinstance(left, ast.Name)
        and left.id == "__name__"
        and isinstance(right, ast.Constant)
        and right.value == "__main__"
    ):
        return Region.MAIN if taken else Region.NONE
    if isinstance(left, ast.Call) and ast.unparse(left.func) == "random.random":
        return Region.TRAINING if taken else Region.NONE  # a step of scheduled sampling, an augmentation
    if _counts_entries(left) and isinstance(right, ast.Constant) and right.value == 0:
        empty = isinstance(test.ops[0], (ast.Eq, ast.LtE))  # nothing was found: seldom, and then there is little to do
        asked = empty or isinstance(test.ops[0], (ast.NotEq, ast.Gt))
        return Region.FALLBACK if asked and empty is taken else Region.NONE
    if isinstance(right, ast.Constant) and right.value == 4 and _axes_of_a_mask(left):
        return Region.FALLBACK if isinstance(test.ops[0], ast.Eq) is taken else Region.NONE  # somebody made it whole
    name = last_name(left)
    if name is None:
        return Region.NONE
    lowered = name.lower()
    absent = is_none(right)
    if absent and (lowered in ("labels", "label", "targets", "loss", "loss_fn") or _LABELS.fullmatch(lowered)):
        wants = isinstance(test.ops[0], (ast.IsNot, ast.NotEq))
        return Region.TRAINING if wants == taken else Region.NONE
    prepared = _PREPARED.fullmatch(lowered) or _HOST_COPY.fullmatch(lowered)
    if absent and prepared and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        return Region.FALLBACK if isinstance(test.ops[0], ast.Is) == taken else Region.NONE
    if lowered in ("order", "this_order") and isinstance(right, ast.Constant) and right.value == 2:
        # multistep solvers are of the second order by default; those of the first have branches of their own
        return Region.FALLBACK if isinstance(test.ops[0], ast.Eq) is not taken else Region.NONE
    if lowered.endswith("backend") and isinstance(test.ops[0], (ast.In, ast.NotIn)):
        asked = _OTHER_KERNELS.search(last_name(right) or "") is not None
        return Region.FALLBACK if asked and isinstance(test.ops[0], ast.In) is taken else Region.NONE
    if "attn_implementation" in lowered or "attention_backend" in lowered:
        chosen = isinstance(right, ast.Constant) and right.value in (
            "eager",
            "flash_attention_2",
        )  # sdpa is the default
        same = isinstance(test.ops[0], (ast.Eq, ast.Is))
        if chosen and same == taken:
            return Region.FALLBACK
    return _device_region(left, test.ops[0], right, taken)


def _counts_entries(node: ast.expr) -> bool:
    """``x.shape[0]``, ``x.size(0)``, ``x.numel()``."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "numel" or (node.func.attr == "size" and bool(node.args))
    return False


def _axes_of_a_mask(node: ast.expr) -> bool:
    """``attention_mask.dim()``, ``mask.ndim``."""
    counted = node.func if isinstance(node, ast.Call) else node
    if not (isinstance(counted, ast.Attribute) and counted.attr in ("dim", "ndim")):
        return False
    return (last_name(counted.value) or "").lower().endswith("mask")


def _device_region(left: ast.expr, op: ast.cmpop, right: ast.expr, taken: bool) -> Region:
    """FALLBACK on the branch of ``x.device.type == "cuda"`` for everything else, and on that of other devices."""
    if last_name(left) not in ("type", "device_type", "device"):
        return Region.NONE
    parts = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
    names = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    if not names or not names <= _DEVICES:
        return Region.NONE
    same = isinstance(op, (ast.Eq, ast.Is, ast.In)) == taken
    return Region.FALLBACK if same is ("cuda" not in names) else Region.NONE


def near_clock(statement: ast.stmt, block: list[ast.stmt]) -> bool:
    """Whether a plain neighbour of the statement, at most two away, reads a clock or records an event: timing code.

    What a neighbouring loop or branch does inside says nothing about the statement.
    """
    index = block.index(statement)
    for other in block[max(0, index - 2) : index + 3]:
        if other is statement or hasattr(other, "body"):
            continue
        for node in descendants(other):
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)) and _is_clock(node):
                return True
    return False


def _is_clock(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute):
        name = call.func.attr
        if name == "record":  # of an event; others record tokens, metrics, ...
            return _ends_in(call.func.value, ("event", "start", "end", "stop", "begin", "ev"))
    else:
        name = getattr(call.func, "id", "")
    return _CLOCKS.fullmatch(name) is not None and (name != "time" or not call.args)
