"""Calls of models inside loops over items."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from awp_lint.detector.semantics.defined import held_statements
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FunctionView, LoopKind
from awp_lint.rules.common import ancestors, callee, loop_body, names_in, target_names

#: Methods that run a model over what could be a batch.
MODEL_METHODS = frozenset({
    "generate", "encode_text", "encode_image", "get_text_features", "get_image_features", "transcribe", "forward",
    "encode_prompt", "predict", "infer", "embed", "get_audio_features",
})  # fmt: skip
#: Of them, those that nothing but a model has.
MODELS_ALONE = frozenset({
    "encode_text", "encode_image", "get_text_features", "get_image_features", "get_audio_features",
})  # fmt: skip
_MODEL_NAMES = re.compile(
    r"(^|_)(model|encoder|decoder|unet|vae|transformer|clip|bert|llm|lm|detector|classifier|embedder|reranker|net|network"
    r"|backbone|tower|generator)$"
)
#: Arguments in which a model keeps what the next call needs.
_CACHE = re.compile(r"(^|_)(cache|caches|past_key_values?|past|mems|memory|state|states)(_|$)")
#: Cuts of one input, against running out of memory, and the functions that make them.
_PIECES = re.compile(r"(^|_)(tiles?|tiled|tiling|chunks?|chunked|slic(ed|ing))(_|$)")
_STEPS = re.compile(r"(^|_)(timesteps?|sigmas|progress_bar|denois\w*)(_|$)")
_BATCHED = re.compile(r"(^|_)(batch(es)?|loader|dataloader|chunks?|buckets?|groups?|micro_?batches)(_|$)")


#: Wrappers that pass on what they are given, with a progress bar or a number.
_SHOWN = frozenset(("tqdm", "track", "progress_bar", "enumerate", "iter"))


def model_call(call: ast.Call, view: FunctionView) -> str | None:
    """How a call that runs a whole model reads (``self.model``, ``model.generate``); None for any other call."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in MODEL_METHODS:
        owner = view.value(func.value)
        if owner.kind is Kind.MODULE or (owner.kind is Kind.UNKNOWN and named_model(func.value)):
            return ast.unparse(func)
        return None
    if not may_run_model(call):
        return None
    value = view.value(func)
    if value.kind is Kind.MODULE and (named_model(func) or _whole_model(value.cls)):
        return ast.unparse(func)
    return None


#: Methods of lists, texts and tensors, and functions: no module goes by such a name.
_NO_MODELS = frozenset({
    "append", "extend", "insert", "pop", "items", "keys", "values", "get", "setdefault", "update", "copy", "join",
    "format", "split", "strip", "replace", "startswith", "endswith", "lower", "upper", "view", "reshape", "transpose",
    "permute", "contiguous", "to", "float", "half", "size", "dim", "numel", "item", "tolist", "cpu", "cuda", "numpy",
    "detach", "unsqueeze", "squeeze", "expand", "repeat", "chunk", "cat", "stack", "zeros", "ones", "arange", "tensor",
    "len", "range", "isinstance", "hasattr", "getattr", "int", "bool", "str", "list", "tuple", "dict", "set", "zip",
    "enumerate", "min", "max", "sum", "any", "all", "sorted", "print", "ValueError",
})  # fmt: skip


_LIBRARIES = frozenset({"torch", "np", "numpy", "math", "F", "os", "re", "json", "warnings", "logger"})


def may_run_model(call: ast.Call) -> bool:
    """Whether a call may run a module, by the name of what is called."""
    func = call.func
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in _LIBRARIES:
        return False
    return callee(call) not in _NO_MODELS


def model_of(call: ast.Call) -> ast.expr:
    """The model that a model call runs: ``self.model`` of ``self.model.generate(…)`` and of ``self.model(…)``."""
    func = call.func
    return func.value if isinstance(func, ast.Attribute) and func.attr in MODEL_METHODS else func


def _whole_model(cls: str | None) -> bool:
    return cls is not None and cls.startswith(("transformers.", "diffusers.", "sentence_transformers.", "timm."))


def named_model(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return bool(_MODEL_NAMES.search(name.lower()))


def item_loops(view: FunctionView, node: ast.AST) -> Iterator[ast.For | ast.AsyncFor | ast.comprehension]:
    """The loops around a node that go over items one by one: rows, samples, prompts; innermost first."""
    for loop in view.loops(node):
        if isinstance(loop, ast.While):
            return
        kind = view.loop_kind(loop)
        if kind not in (LoopKind.BATCH, LoopKind.REQUESTS) and not (kind is LoopKind.UNKNOWN and _inputs(loop, view)):
            return
        if not over_batches(loop):
            yield loop


def may_be_fed(call: ast.Call, view: FunctionView) -> bool:
    """Whether a call may be given something of an item of one of :func:`item_loops`: no value is asked for."""
    given: frozenset[str] | None = None
    for loop in view.loops(call):
        if isinstance(loop, ast.While) or view.loop_kind(loop) not in _ITEMS:
            return False
        known: dict[ast.AST, frozenset[str]] = view.memo.setdefault(may_be_fed, {})
        reached = known.get(loop)
        if reached is None:
            reached = known[loop] = bound_by(target_names(loop.target), loop)
        given = fed(call) if given is None else given
        if given & reached:
            return True
    return False


_ITEMS = (LoopKind.BATCH, LoopKind.REQUESTS, LoopKind.UNKNOWN)


def _inputs(loop: ast.For | ast.AsyncFor | ast.comprehension, view: FunctionView) -> bool:
    """Whether the loop goes over a list of what models are asked about: texts, arrays."""
    value = view.value(loop.iter)
    return (
        value.kind is Kind.SEQUENCE and value.element is not None and value.element.kind in (Kind.STRING, Kind.NDARRAY)
    )


def counted(loop: ast.For | ast.AsyncFor | ast.comprehension) -> ast.expr:
    """What a loop goes over, without progress bars and numbers around it."""
    source = loop.iter
    while isinstance(source, ast.Call) and callee(source) in _SHOWN and source.args:
        source = source.args[0]
    return source


def over_batches(loop: ast.For | ast.AsyncFor | ast.comprehension) -> bool:
    """Whether the loop goes over batches already: loaders, chunks, or a range with a step."""
    source = counted(loop)
    if isinstance(source, ast.Call) and len(source.args) == 3 and callee(source) in ("range", "trange"):
        return True
    words = [*target_names(loop.target)]
    for node in ast.walk(loop.iter):
        if isinstance(node, ast.Name):
            words.append(node.id)
        elif isinstance(node, ast.Attribute):
            words.append(node.attr)
    return any(_BATCHED.search(word.lower()) and "batch_size" not in word.lower() for word in words)


def depends_on(call: ast.Call, names: frozenset[str], loop: ast.AST) -> bool:
    """Whether an argument uses one of the names, directly or through names bound in the loop's body."""
    return bool(fed(call) & bound_by(names, loop))


def bound_by(names: frozenset[str], loop: ast.AST) -> frozenset[str]:
    """The names, and those of a loop's body that are made of them."""
    reached = set(names)
    for statement in loop_body(loop):
        level: list[ast.AST] = [statement]
        while level:
            for node in level:
                if isinstance(node, ast.Assign) and names_in(node.value) & reached:
                    for target in node.targets:
                        reached |= target_names(target)
            level = [inner for node in level for inner in held_statements(node)]
    return frozenset(reached)


def fed(call: ast.Call) -> frozenset[str]:
    """Names that the arguments of a call use."""
    return frozenset().union(*map(names_in, [*call.args, *(k.value for k in call.keywords)]))


def _used(node: ast.AST) -> frozenset[str]:
    """The names in an expression, and its attributes: what is put into `self.x` is not all of `self`."""
    return names_in(node) | {ast.unparse(part) for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def carries_state(call: ast.Call, loop: ast.AST) -> bool:
    """Whether a pass of the loop needs the result of the one before.

    What the call returns, or leaves in a cache that is handed to it, flows into its arguments.
    """
    if any(k.arg is not None and _CACHE.search(k.arg) and not isinstance(k.value, ast.Constant) for k in call.keywords):
        return True
    sources: dict[str, set[str]] = {}  # what each name of the body is made of
    made: set[str] = set()  # names that hold what the call returns
    first: dict[str, int] = {}  # where a name is bound first, at the body's own level
    for statement in loop_body(loop):
        for node in ast.walk(statement):
            if isinstance(node, ast.For):
                for name in target_names(node.target):
                    sources.setdefault(name, set()).update(_used(node.iter))
            elif isinstance(node, ast.Call) and (kept := _put_into(node)) is not None:
                sources.setdefault(kept, set()).update(fed(node))
            if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) or node.value is None:
                continue
            bound = frozenset().union(*map(target_names, _targets(node)), *map(_written_into, _targets(node)))
            for name in bound:
                sources.setdefault(name, set()).update(_used(node.value))
                if node is statement and not isinstance(node, ast.AugAssign):
                    first.setdefault(name, node.lineno)
            if any(part is call for part in ast.walk(node.value)):
                made |= bound
    made |= {name for name in sources if made & _reached(sources[name], sources)}
    # A name that the call needs comes from the pass before where nothing binds it anew above its use.
    given = [*call.args, *(k.value for k in call.keywords)]
    return any(
        name in made and first.get(name, call.lineno + 1) >= _first_use(name, loop)
        for name in _reached(frozenset().union(*map(_used, given)), sources)
    )


def _root(node: ast.expr) -> str | None:
    """The name that an item or attribute belongs to."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _written_into(target: ast.expr) -> frozenset[str]:
    """``x`` of ``x[:, i] = …``."""
    name = _root(target) if isinstance(target, ast.Subscript) else None
    return frozenset() if name is None else frozenset((name,))


def _put_into(call: ast.Call) -> str | None:
    """``x`` of ``x.append(…)`` and ``x[key].append(…)``; ``self.x`` of ``self.x.append(…)``, not all of self."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in ("append", "extend", "add"):
        return None
    kept = func.value
    while isinstance(kept, ast.Subscript):
        kept = kept.value
    return ast.unparse(kept) if isinstance(kept, ast.Name | ast.Attribute) else None


def _targets(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _reached(names: Iterable[str], sources: dict[str, set[str]]) -> set[str]:
    """The names and all that they are made of, however far back."""
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += sources.get(name, ())
    return found


def _first_use(name: str, loop: ast.AST) -> int:
    lines = [
        part.lineno
        for statement in loop_body(loop)
        for part in ast.walk(statement)
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)
    ]
    return min(lines, default=0)


def in_pieces(view: FunctionView, loop: ast.For | ast.AsyncFor | ast.comprehension) -> bool:
    """Whether the loop goes over steps, or over the tiles and chunks of one input, which are apart on purpose."""
    if _PIECES.search(view.qualname.rpartition(".")[2].lower()):
        return True
    words = [*target_names(loop.target)]
    words += [part.id for part in ast.walk(loop.iter) if isinstance(part, ast.Name)]
    words += [part.attr for part in ast.walk(loop.iter) if isinstance(part, ast.Attribute)]
    return any(_PIECES.search(word.lower()) or _STEPS.search(word.lower()) for word in words)


def cut_by_number(loop: ast.For | ast.AsyncFor | ast.comprehension) -> bool:
    """Whether each pass takes a stretch whose bounds are multiples of its number: ``x[i * size : (i + 1) * size]``.

    Of a stream or a long input, in pieces, or batches already.
    """
    names = target_names(loop.target)
    return any(
        isinstance(part, ast.Slice)
        and part.lower is not None
        and part.upper is not None
        and _multiple(part.lower, names)
        for statement in loop_body(loop)
        for part in ast.walk(statement)
    )


def _multiple(bound: ast.expr, names: frozenset[str]) -> bool:
    """``i * size`` with ``i`` among the names."""
    return isinstance(bound, ast.BinOp) and isinstance(bound.op, ast.Mult) and bool(names_in(bound) & names)


def may_lack_parts(loop: ast.For | ast.AsyncFor | ast.comprehension) -> bool:
    """Whether the items are records of which several parts may be missing, as prompts of an image may:
    ``record.get("boxes")``, ``if "points" in record``. What differs so from item to item makes no batch."""
    names = target_names(loop.target)
    asked = {_asked_for(part, names) for statement in loop_body(loop) for part in ast.walk(statement)}
    return len(asked - {None}) > 1


def _asked_for(node: ast.AST, names: frozenset[str]) -> object:
    """The name of a part that an item, one of the names, is asked whether it has it; None if it is not."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        key, holder = node.left, node.comparators[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        key, holder = node.args[0], node.func.value
        if len(node.args) > 1 and not (isinstance(node.args[1], ast.Constant) and node.args[1].value is None):
            return None
    else:
        return None
    of_item = isinstance(holder, ast.Name) and holder.id in names
    return key.value if of_item and isinstance(key, ast.Constant) else None


def along_another_axis(call: ast.Call, loop: ast.For | ast.AsyncFor | ast.comprehension) -> bool:
    """Whether each pass takes a stretch of all samples, along an axis that is not the batch's: ``x[:, :, i : i + 1]``,
    ``for part in x.split(8, dim=2)``. Stretches belong to one another, as those of a causal cache do."""
    names = target_names(loop.target)
    parts = (part for given in call.args for part in ast.walk(given))
    return _split_inside(loop.iter) or any(isinstance(p, ast.Subscript) and _all_samples(p, names) for p in parts)


def _split_inside(made: ast.expr) -> bool:
    """``x.split(8, dim=2)``."""
    if not isinstance(made, ast.Call) or callee(made) not in ("split", "chunk", "tensor_split", "unbind"):
        return False
    axes = [keyword.value for keyword in made.keywords if keyword.arg == "dim"]
    return any(isinstance(axis, ast.Constant) and axis.value not in (0, None) for axis in axes)


def _all_samples(taken: ast.Subscript, names: frozenset[str]) -> bool:
    """``x[:, :, i : i + 1]`` with ``i`` among the names."""
    first, *others = taken.slice.elts if isinstance(taken.slice, ast.Tuple) and taken.slice.elts else (taken.slice,)
    whole = isinstance(first, ast.Slice) and first.lower is first.upper is first.step is None
    return whole and any(isinstance(other, ast.Slice) and names & names_in(other) for other in others)


def one_of_many(call: ast.Call, loop: ast.For | ast.AsyncFor | ast.comprehension) -> bool:
    """Whether each pass calls another module: ``self.heads[level](x)``, ``encoder.get(i)(x)``."""
    names = target_names(loop.target)
    return bool(names_in(call.func) & names)


def taken_whole(call: ast.Call, view: FunctionView) -> bool:
    """Whether it stands in the branch for lists of a function that gives a batch to the same model in the other one:
    ``if isinstance(images, list): [self.model(image[None]) …] else: self.model(images)``. Or behind one that returned
    what the model gave for a batch."""
    child: ast.AST = call
    name = ast.unparse(call.func)
    for parent in ancestors(view, call):
        if isinstance(parent, ast.If) and child is not parent.test and _asks_for_list(parent.test):
            others = parent.orelse if child in parent.body else parent.body
            if _calls(others, name):
                return True
        body = getattr(parent, "body", None)
        for earlier in body[: body.index(child)] if isinstance(body, list) and child in body else ():
            left = isinstance(earlier, ast.If) and isinstance(earlier.body[-1], ast.Return)
            if left and _asks_for_list(earlier.test) and _calls(earlier.body, name):
                return True
        child = parent
    return False


def _calls(statements: list[ast.stmt], name: str) -> bool:
    return any(
        isinstance(part, ast.Call) and ast.unparse(part.func) == name
        for statement in statements
        for part in ast.walk(statement)
    )


def _asks_for_list(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Call)
        and isinstance(test.func, ast.Name)
        and test.func.id == "isinstance"
        and len(test.args) == 2
        and not {"list", "tuple", "Tensor"}.isdisjoint(
            part.id if isinstance(part, ast.Name) else getattr(part, "attr", "") for part in ast.walk(test.args[1])
        )
    )


def of_few_prompts(view: FunctionView) -> bool:
    """Whether a method of a diffusion pipeline prepares what the steps need: for the few prompts of a request."""
    prompts = "prompt" in view.qualname.rpartition(".")[2].lower()
    return prompts and any(base.rpartition(".")[2] == "DiffusionPipeline" for base in view.class_bases)
