"""What a loop goes over, told from the names it uses: layers, steps, tokens, rows, requests, …

A loop's kind is decided by words: the identifiers of its iterable (``self.layers``, ``range(batch_size)``) and of its
target, and, where they leave it open, by what its body does. The tables hold one pattern a kind, for whole identifiers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from awp_lint.detector.semantics.definition import LoopNode, child_nodes, descendants
from awp_lint.detector.semantics.view import Level, LoopKind

#: What one iteration of a loop multiplies a frequency with; None: nothing that matters.
LEVELS: dict[LoopKind, Level | None] = {
    LoopKind.LAYERS: Level.LAYER,
    LoopKind.STEPS: Level.STEP,
    LoopKind.TOKENS: Level.TOKEN,
    LoopKind.BATCH: Level.ITEM,
    LoopKind.REQUESTS: Level.REQUEST,
    LoopKind.ELEMENTS: Level.ELEMENT,
    LoopKind.EXPERTS: Level.EXPERT,
    LoopKind.FILES: Level.REQUEST,
    LoopKind.EPOCHS: None,
    LoopKind.RETRIES: None,
    LoopKind.FIXED: None,
    LoopKind.UNKNOWN: Level.LOOP,
}

_FIXED_LIMIT = 16  # a literal range up to this is a constant number of repetitions, no frequency of its own


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives))


#: Identifiers of iterables, lower case, in order of precedence.
_ITERABLES: tuple[tuple[LoopKind, re.Pattern[str]], ...] = (
    (LoopKind.EXPERTS, _pattern(r"((num|n|local|hit|active|routed)_)*experts?(_hit|_ids|_idx|_mask)?", "expert_.*")),
    (
        LoopKind.STEPS,
        _pattern(
            r"(\w+_)?timesteps?",
            r"(num_|max_|n_)?(inference|denoising|sampling|diffusion|ode|euler)_steps",
            r"(\w+_)?sigmas",
            r"(num_|n_|max_|total_)?steps",
            r"(num_|n_|max_|total_)?frames",
        ),
    ),
    (
        LoopKind.TOKENS,
        _pattern(
            r"max_(new_)?tokens(_to_generate)?",
            r"max_new\w*",
            r"max_(gen|generation|decode|output|out|target|length)_?(len|length|tokens|steps)?",
            r"(n|num)_(new|output|generated?|gen)_?tokens(_to_generate)?",
            r"gen(eration)?_len(gth)?",
        ),
    ),
    (
        LoopKind.LAYERS,
        _pattern(
            r"(\w+_)?layers?(_list|_module|_types)?",
            r"(\w+_)?(blocks?|resnets|stages?|mlps|bottlenecks|attentions|upsamplers|downsamplers|convs\d*)",
            r"n(um)?_(hidden_)?layers?",
            "depth|h|resblocks|motion_modules|kv_caches",
        ),
    ),
    (LoopKind.EPOCHS, _pattern(r"(num_|n_|max_|total_)?(train_)?epochs?", "max_train_steps")),
    (
        LoopKind.REQUESTS,
        _pattern(
            r"(\w+_)?(requests?|reqs|req_ids|queue|sentences|texts|prompts|questions|conversations|messages|class_?names)",
            r"prompt|documents|docs|dialogs|dataset|batched|(\w+_)?(data_?)?loader|seq_groups?(_metadata_list)?",
        ),
    ),
    (
        LoopKind.BATCH,
        _pattern(
            r"batch(_size|_sz|es|_dim|_idx)?|bs|bsz|b",
            r"(num|n)_(seqs|samples|rows|reqs|requests|prompts|sequences|images|videos|beams)",
            "num_return_sequences|input_ids|hidden_states|logits|token_ids_list",
            r"(\w+_)?(images|videos|audios?|samples|examples|rows|sequences|beams)",
        ),
    ),
    (
        LoopKind.FILES,
        _pattern(r"(\w+_)?(files|paths|filenames|dirs)", "glob|rglob|iterdir|listdir|walk|scandir|iglob"),
    ),
    (LoopKind.RETRIES, _pattern(r"(max_|num_|n_)?(retries|attempts|tries|trials)")),
    (
        LoopKind.ELEMENTS,
        _pattern(
            r"(seq|sequence|src|tgt|kv|q|context|cur)_?len(gth)?s?",
            "seqlen|height|width|vocab_size|tolist|flatten",
            "num_(tokens|patches|pixels|points)",
        ),
    ),
)

#: Names of loop targets, used where the iterable says nothing.
_TARGETS: tuple[tuple[LoopKind, re.Pattern[str]], ...] = (
    (LoopKind.EXPERTS, _pattern(r"expert(_\w+)?")),
    (LoopKind.LAYERS, _pattern(r"(\w+_)?(layer|block|blk|resnet|attn|(up|down)sampler)(_module|_idx|_id|_index)?")),
    (LoopKind.STEPS, _pattern(r"(time)?step(_idx|_index)?", r"(frame|time)_idx|frame")),
    (LoopKind.TOKENS, _pattern(r"(new_)?token(_idx|_pos)?", "cur_pos")),
    (LoopKind.REQUESTS, _pattern(r"req(uest)?(_id|_idx|_index)?", "prompt|sentence|seq_group")),
    (LoopKind.BATCH, _pattern("b(atch)?_?(idx|index|i)", "batch|bi", "(sample|row|beam|image|passage|seq)(_idx|_id)?")),
    (LoopKind.EPOCHS, _pattern("epoch(_idx)?")),
    (LoopKind.RETRIES, _pattern("attempt|retry|trial")),
    (LoopKind.FILES, _pattern(r"(\w+_)?(file|path|filename)")),
)

#: Conditions of ``while`` that hold as long as tokens are missing, an engine has work, or a queue has items.
_WHILE: tuple[tuple[LoopKind, re.Pattern[str]], ...] = (
    (
        LoopKind.STEPS,
        _pattern(
            "has_unfinished_requests|has_requests|has_work|unfinished_requests",
            r"_handle_shutdown|shutdown\w*|running|is_running|_?is_alive|stopped|_stop_event",
        ),
    ),
    (
        LoopKind.TOKENS,
        _pattern(
            r"_?has_unfinished_sequences|unfinished(_sequences)?|(all_|this_peer_|is_|seq_)?finished",
            r"cur_len(gth)?|max_(new_)?(tokens|length|len)|eos(_\w+)?|generated(_\w+)?|num_generated(_\w+)?",
        ),
    ),
    (LoopKind.REQUESTS, _pattern(r"(\w+_)?queue|get_nowait|recv\w*|requests?")),
)

#: Calls that only pass on what they are given.
_WRAPPERS = frozenset(
    (
        *("enumerate", "zip", "reversed", "sorted", "list", "tuple", "set", "iter", "tqdm", "trange", "progress_bar"),
        *("range", "len", "min", "max", "map", "filter", "islice", "cycle", "chain", "int"),
    )
)
_VIEWS = frozenset(("values", "items", "keys", "split", "chunk", "unbind", "tolist", "cpu", "numpy", "detach"))

#: Calls on which a server's ``while True`` waits for its next request.
_WAITS = frozenset(("get", "get_nowait", "recv", "recv_pyobj", "recv_multipart", "accept", "popleft", "receive_text"))

_PICKS = frozenset(("argmax", "multinomial", "sample", "topk", "sample_token", "sample_top_p", "sample_top_k"))
_GROWS = frozenset(("cat", "append", "concat", "hstack"))
_MODELS = frozenset(("model", "forward", "decoder", "lm", "llm", "transformer", "decode_step", "gpt"))


def loop_kind(loop: LoopNode) -> LoopKind:
    """The kind of a loop."""
    if isinstance(loop, ast.While):
        return _while_kind(loop)
    if _fixed(loop.iter):
        return LoopKind.FIXED
    kind = _match(_words(loop.iter), True) or _match(_gone_through(loop), False)
    if kind is LoopKind.REQUESTS and _counts(loop):
        kind = LoopKind.BATCH
    if kind is None and (axis := _axis(loop.iter)) is not None:
        kind = LoopKind.BATCH if axis == 0 else LoopKind.ELEMENTS
    if kind is None and isinstance(loop, (ast.For, ast.AsyncFor)) and _recurs(loop.body):
        kind = LoopKind.STEPS
    if kind in (None, LoopKind.TOKENS) and _has_own_steps(loop):
        return LoopKind.FIXED
    undecided = kind in (None, LoopKind.STEPS, LoopKind.BATCH, LoopKind.ELEMENTS)
    if undecided and isinstance(loop, (ast.For, ast.AsyncFor)):
        if _decodes(loop.body) or (kind is None and _lengthens(loop.body)):
            return LoopKind.TOKENS
        if kind is None and (asked := _asked_model(loop.body)) is not None:
            # a service asks its own model about each item of a request; a script serves a request a pass
            own = isinstance(asked, ast.Attribute) and isinstance(asked.value, ast.Name) and asked.value.id == "self"
            return LoopKind.BATCH if own else LoopKind.REQUESTS
    if kind is LoopKind.LAYERS and _has_steps(loop):
        return LoopKind.UNKNOWN
    if kind is LoopKind.STEPS and _looks_up(loop):
        return LoopKind.UNKNOWN
    return kind or LoopKind.UNKNOWN


def _has_own_steps(loop: ast.For | ast.AsyncFor | ast.comprehension) -> bool:
    """Whether sections or canvases are gone through, each of which takes all the steps of a model: what is done once a
    section is done a few times a request."""
    if isinstance(loop, ast.comprehension):
        return False
    waiting = list(loop.body)
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, ast.With):
            waiting += statement.body
        elif isinstance(statement, ast.For) and _match(_words(statement.iter), True) is LoopKind.STEPS:
            return True
    return False


def _has_steps(loop: ast.For | ast.AsyncFor | ast.comprehension) -> bool:
    """Whether stages or blocks of text are gone through, each with steps of its own: no layers of a model."""
    if isinstance(loop, ast.comprehension):
        return False
    stages = any("stage" in word for word in _words(loop.iter))
    for part in (part for statement in loop.body for part in descendants(statement)):
        if isinstance(part, ast.While):
            if _while_kind(part) is LoopKind.STEPS:
                return True
        elif stages and isinstance(part, ast.For) and _match(_words(part.iter), True) is LoopKind.STEPS:
            return True
    return False


#: What the places of some timesteps in a schedule are looked up with.
_LOOKS_UP = _pattern(
    r"\w*index\w*|nonzero|argmin|argmax|abs|item|tolist|to|long|flatten|append",
    r"len|int|float|min|max|isinstance",
)


def _looks_up(loop: LoopNode) -> bool:
    """``[self.index_for_timestep(t) for t in timesteps]``: the places of a batch of timesteps, no steps of a model."""
    if isinstance(loop, ast.While) or not isinstance(loop.iter, ast.Name):
        return False
    if not loop.iter.id.endswith(("timesteps", "timestep")):
        return False
    if isinstance(loop, ast.comprehension):
        return True
    called = [_called(part) for statement in loop.body for part in ast.walk(statement) if isinstance(part, ast.Call)]
    return bool(called) and all(_LOOKS_UP.fullmatch(name) for name in called)


@lru_cache(maxsize=8192)
def _word_kind(word: str, iterable: bool) -> tuple[int, LoopKind] | None:
    """The kind of one identifier, with its precedence."""
    for index, (kind, pattern) in enumerate(_ITERABLES if iterable else _TARGETS):
        if pattern.fullmatch(word):
            return index, kind
    return None


def _match(words: Iterator[str], iterable: bool) -> LoopKind | None:
    found = [kind for word in words if (kind := _word_kind(word, iterable)) is not None]
    return min(found, key=lambda kind: kind[0])[1] if found else None


def _words(node: ast.expr) -> Iterator[str]:
    """Identifiers that name what is iterated, wrappers such as ``enumerate`` and ``range`` taken off."""
    if isinstance(node, ast.Name):
        yield node.id.lower()
    elif isinstance(node, ast.Attribute):
        if node.attr in ("values", "items", "keys", "shape"):
            yield from _words(node.value)
        else:
            yield node.attr.lower()
    elif isinstance(node, ast.Call):
        name = _called(node)
        if name in _WRAPPERS:
            for arg in node.args:
                yield from _words(arg)
        elif name in _VIEWS and isinstance(node.func, ast.Attribute):
            yield from _words(node.func.value)
        else:
            yield name.lower()
    elif isinstance(node, (ast.Subscript, ast.Starred)):
        yield from _words(node.value)
    elif isinstance(node, ast.BinOp):
        yield from _words(node.left)
        yield from _words(node.right)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _words(value)
    elif isinstance(node, ast.IfExp):
        yield from _words(node.body)
        yield from _words(node.orelse)


def _called(call: ast.Call) -> str:
    """Last name of what is called, "" for anything else than a name or an attribute."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _gone_through(loop: ast.For | ast.AsyncFor | ast.comprehension) -> Iterator[str]:
    """Names of a loop's targets that say what it goes through.

    In ``for box, layer_idx in zip(boxes, layer_idxs)`` the number is a label of the box: that of its layer of crops.
    """
    target, source = loop.target, loop.iter
    if isinstance(target, ast.Tuple) and isinstance(source, ast.Call) and _called(source) == "zip":
        for element in target.elts:
            label = isinstance(element, ast.Name) and element.id.lower().endswith(("_idx", "_index", "_id"))
            if element is target.elts[0] or not label:
                yield from _target_words(element)
    else:
        yield from _target_words(target)


def _target_words(target: ast.expr) -> Iterator[str]:
    for node in descendants(target):
        if isinstance(node, ast.Name):
            yield node.id.lower()


def _fixed(node: ast.expr) -> bool:
    """A literal list, or a literal range of a few repetitions."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return bool(node.elts) and not any(isinstance(e, ast.Starred) for e in node.elts)
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "set" and node.args:  # the few kinds that there are: ``set(config.layer_types)``
            return any(word.endswith("_types") for word in _words(node.args[0]))
        if node.func.id == "enumerate" and node.args:
            return _fixed(node.args[0])
        if node.func.id == "range" and 1 <= len(node.args) <= 2:
            last = node.args[-1]
            return isinstance(last, ast.Constant) and isinstance(last.value, int) and last.value <= _FIXED_LIMIT
    return False


def _counts(loop: LoopNode) -> bool:
    """``for row in range(len(texts))``, ``for row, text in enumerate(texts): x[row]``: what is counted are rows of a
    batch, one a text."""
    if isinstance(loop, (ast.For, ast.AsyncFor)) and _numbers_rows(loop):
        return True
    return (
        isinstance(loop, (ast.For, ast.AsyncFor, ast.comprehension))
        and isinstance(loop.iter, ast.Call)
        and _called(loop.iter) == "range"
        and len(loop.iter.args) == 1
        and _match(_target_words(loop.target), False) is LoopKind.BATCH
    )


def _numbers_rows(loop: ast.For | ast.AsyncFor) -> bool:
    """Whether the number that ``enumerate`` gives, named as that of a row, says which row of something is meant."""
    target, source = loop.target, loop.iter
    if not (isinstance(source, ast.Call) and _called(source) == "enumerate" and isinstance(target, ast.Tuple)):
        return False
    number = target.elts[0]
    if not isinstance(number, ast.Name) or _match(_target_words(number), False) is not LoopKind.BATCH:
        return False
    for part in (part for statement in loop.body for part in descendants(statement)):
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load):
            first = part.slice.elts[0] if isinstance(part.slice, ast.Tuple) and part.slice.elts else part.slice
            if isinstance(first, ast.Name) and first.id == number.id:
                return True
    return False


def _axis(node: ast.expr) -> int | None:
    """The axis of ``range(x.shape[k])`` or ``range(x.size(k))``, else None."""
    if not (isinstance(node, ast.Call) and _called(node) == "range" and len(node.args) == 1):
        return None
    size = node.args[0]
    index: ast.expr | None = None
    if isinstance(size, ast.Subscript) and isinstance(size.value, ast.Attribute) and size.value.attr == "shape":
        index = size.slice
    elif isinstance(size, ast.Call) and _called(size) == "size" and size.args:
        index = size.args[0]
    if isinstance(index, ast.Constant) and isinstance(index.value, int):
        return index.value
    return None


_TAKES = re.compile(r"_*(collect|get|recv|receive|next|poll|take|wait|fetch|pop|dequeue)(_\w+)?")


def _while_kind(loop: ast.While) -> LoopKind:
    words = [
        (node.id if isinstance(node, ast.Name) else node.attr).lower()
        for node in descendants(loop.test)
        if isinstance(node, (ast.Name, ast.Attribute))
    ]
    for kind, pattern in _WHILE:
        if any(pattern.fullmatch(word) for word in words):
            return kind
    if _decodes(loop.body) or _lengthens(loop.body):
        return LoopKind.TOKENS
    if _takes_work(loop.test):
        return LoopKind.REQUESTS
    if _recurs(loop.body):
        return LoopKind.STEPS
    if isinstance(loop.test, ast.Constant):
        return _forever_kind(loop)
    return LoopKind.UNKNOWN if _asked_model(loop.body) is None else LoopKind.STEPS


def _takes_work(test: ast.expr) -> bool:
    """``while batch := self._collect():``, a worker that goes on as long as it is given something."""
    if isinstance(test, ast.Compare):
        test = test.left
    return (
        isinstance(test, ast.NamedExpr)
        and isinstance(test.value, ast.Call)
        and _TAKES.fullmatch(_called(test.value)) is not None
    )


def _own_take(node: ast.expr) -> bool:
    """``self.gather()``: what an object takes from its own queue."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    own = isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
    return own and (node.func.attr == "gather" or _TAKES.fullmatch(node.func.attr) is not None)


#: What the endless loop of a serving engine does in each of its steps.
_ENGINE = _pattern(r"_?get_next_\w*batch\w*", r"_?run_batch", r"_?execute_model\w*", r"_?process_engine_step")


def _forever_kind(loop: ast.While) -> LoopKind:
    """``while True``: a server's loop by what it waits for, else unknown."""
    first = loop.body[0]
    if isinstance(first, ast.Assign) and isinstance(first.value, ast.Await) and _own_take(first.value.value):
        return LoopKind.REQUESTS
    for node in ast.walk(loop):
        if not isinstance(node, ast.Call):
            continue
        name = _called(node)
        if name == "input" and isinstance(node.func, ast.Name):
            return LoopKind.REQUESTS
        if isinstance(node.func, ast.Attribute):
            receiver = ast.unparse(node.func.value).lower()
            if name in _WAITS and (name != "get" or "queue" in receiver or receiver.endswith("q")):
                return LoopKind.REQUESTS
            if (name == "step" and "engine" in receiver) or _ENGINE.fullmatch(name):
                return LoopKind.STEPS
    return LoopKind.UNKNOWN


_RECURRENT = _pattern(r"(\w+_)?(model|encoder|decoder|net|network|rnn|lstm|gru|cell|transformer|vocoder|codec|forward)")


def _recurs(body: list[ast.stmt]) -> bool:
    """Whether a statement of the body gives a model the state that its last call returned: ``y, s = model(x, s)``."""
    for statement in body:
        if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
            continue
        call, target = statement.value, statement.targets[0]
        if not isinstance(target, ast.Tuple) or not _RECURRENT.fullmatch(_called(call).lower()):
            continue
        bound = {part.id for part in target.elts if isinstance(part, ast.Name)}
        given = {node.id for node in (*call.args, *(k.value for k in call.keywords)) if isinstance(node, ast.Name)}
        if bound & given:
            return True
    return False


def _model_method(call: ast.Call) -> bool:
    """``self.model.decode(…)``: a method of what is called a model."""
    return (
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Attribute)
        and call.func.value.attr.lower() in _MODELS
    )


def _asked_model(body: list[ast.stmt]) -> ast.expr | None:
    """The model that a statement of the body itself runs: ``self.model`` of ``y = self.model(x)``."""
    for statement in body:
        value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)) else None
        if value is None:
            continue
        for node in ast.walk(value):
            if isinstance(node, ast.Call) and _RECURRENT.fullmatch(_called(node).lower()):
                return node.func
    return None


_SEQUENCE = _pattern(r"(\w+_)?(tokens?|ids|input_ids|token_ids|generated|prefix|output_ids)")


def _lengthens(body: list[ast.stmt]) -> bool:
    """Whether the body appends to a row of tokens that it also asks about: ``tokens = torch.cat((tokens, new), dim=1)``
    beside ``self.draft(tokens)``."""
    grown: dict[str, ast.Call] = {}
    for statement in body:
        if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
            continue
        target, call = statement.targets[0], statement.value
        if isinstance(target, ast.Name) and _SEQUENCE.fullmatch(target.id.lower()) and _called(call) == "cat":
            parts = call.args[0].elts if call.args and isinstance(call.args[0], (ast.Tuple, ast.List)) else []
            if len(parts) == 2:
                grown[target.id] = call
    return bool(grown) and any(
        isinstance(arg, ast.Name) and arg.id in grown and node is not grown[arg.id]
        for statement in body
        for node in descendants(statement)
        if isinstance(node, ast.Call)
        for arg in node.args
    )


def _decodes(body: list[ast.stmt]) -> bool:
    """Whether the body picks a next token from scores and adds it to what was generated: a decode loop."""
    picks = grows = calls_model = False
    pending: list[ast.AST] = [*body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call):
            name = _called(node)
            picks = picks or name in _PICKS
            grows = grows or name in _GROWS
            calls_model = calls_model or name in _MODELS or _model_method(node)
            if picks and grows and calls_model:
                return True
        pending += child_nodes(node)
    return False
