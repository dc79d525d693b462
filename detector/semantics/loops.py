"""What a loop goes over, told from the names it uses: layers, steps, tokens, rows, requests, …

A loop's kind is decided by words: the identifiers of its iterable (``self.layers``, ``range(batch_size)``) and of its
target. The tables hold one word a kind; a word is matched against the underscore-separated pieces of an identifier.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.semantics.definition import LoopNode
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

#: Whole identifiers of iterables (any piece of a dotted chain), lower case.
_ITERABLES: tuple[tuple[LoopKind, re.Pattern[str]], ...] = (
    (LoopKind.EXPERTS, re.compile(r"(num_|n_|local_|hit_|active_)*experts?(_hit|_ids|_idx|_mask)?|expert_hit|n_routed_experts")),
    (
        LoopKind.STEPS,
        re.compile(
            r"(\w+_)?timesteps?|(num_)?(inference|denoising|sampling|diffusion|ode|euler)_steps|(\w+_)?sigmas|sampling_sigmas"
            r"|(num_|n_|max_)?steps|(num_|n_)frames|frames"
        ),
    ),
    (
        LoopKind.TOKENS,
        re.compile(
            r"max_(new_)?tokens(_to_generate)?|max_new\w*|max_(gen|generation|decode|output)_(len|length|tokens|steps)"
            r"|num_(new_|gen_|generated_|output_)?tokens_to_generate|(n|num)_(new|output|generate)_?tokens|gen_len(gth)?|max_decode_len"
        ),
    ),
    (
        LoopKind.LAYERS,
        re.compile(
            r"(\w+_)?layers?(_list|_module)?|(\w+_)?blocks?|num_(hidden_)?layers|n_layers?|depth|h|(\w+_)?resnets|resblocks|(\w+_)?stages?"
            r"|attentions|(down|up)samplers?|(\w+_)?convs\d*|(\w+_)?mlps|motion_modules|(\w+_)?bottlenecks|levels|kv_caches"
        ),
    ),
    (
        LoopKind.REQUESTS,
        re.compile(
            r"(\w+_)?requests?(_queue)?|(\w+_)?reqs|(\w+_)?queue|prompts?|conversations?|dialogs|messages|questions|queries|(\w+_)?sentences"
            r"|(\w+_)?texts|documents|docs|(\w+_)?(data)?loader|dataset|seq_groups?(_metadata_list)?"
        ),
    ),
    (
        LoopKind.BATCH,
        re.compile(
            r"batch(_size|_sz|es|_dim|_idx)?|bs|bsz|b|(num_|n_)(seqs|samples|rows|reqs|requests|prompts|sequences|images|videos|beams)|num_return_sequences"
            r"|(\w+_)?(images|videos|audios?|samples|examples|rows|sequences|beams)|input_ids|hidden_states|logits|token_ids_list"
        ),
    ),
    (LoopKind.EPOCHS, re.compile(r"(num_|n_|max_|total_)?(train_)?epochs?|max_train_steps")),
    (LoopKind.FILES, re.compile(r"(\w+_)?(files|paths|filenames|dirs)|glob|rglob|iterdir|listdir|walk|scandir")),
    (LoopKind.RETRIES, re.compile(r"(max_|num_|n_)?(retries|attempts|tries|trials)")),
    (
        LoopKind.ELEMENTS,
        re.compile(r"(seq|sequence|src|tgt|kv|q|context|cur)_?len(gth)?s?|seqlen|height|width|h_|w_|num_(tokens|patches|pixels|points)|vocab_size|tolist|flatten"),
    ),
)  # fmt: skip

#: Names of loop targets, used where the iterable says nothing.
_TARGETS: tuple[tuple[LoopKind, re.Pattern[str]], ...] = (
    (LoopKind.EXPERTS, re.compile(r"expert(_\w+)?")),
    (
        LoopKind.LAYERS,
        re.compile(r"(\w+_)?(layer|block|blk|resnet|attn|upsampler|downsampler)(_module|_idx|_id|_index)?"),
    ),
    (LoopKind.STEPS, re.compile(r"(time)?step(_idx|_index)?|frame(_idx)?")),
    (LoopKind.TOKENS, re.compile(r"(new_)?token(_idx|_pos)?|cur_pos")),
    (LoopKind.REQUESTS, re.compile(r"req(uest)?(_id|_idx|_index)?|prompt|sentence|seq_group")),
    (
        LoopKind.BATCH,
        re.compile(
            r"b(atch)?_?(idx|index|i)|batch|bi|sample(_idx)?|row(_idx)?|beam(_idx)?|image(_idx)?|seq(_idx|_id)?"
        ),
    ),
    (LoopKind.EPOCHS, re.compile(r"epoch(_idx)?")),
    (LoopKind.RETRIES, re.compile(r"attempt|retry|trial")),
    (LoopKind.FILES, re.compile(r"(\w+_)?(file|path|filename)")),
)

#: ``while`` conditions that hold as long as tokens are missing, or an engine has work.
_WHILE_TOKENS = re.compile(
    r"has_unfinished_sequences|unfinished(_sequences)?|(all_|this_peer_|is_|seq_)?finished|cur_len(gth)?|max_(new_)?(tokens|length|len)"
    r"|eos(_\w+)?|done|generated(_\w+)?|num_generated(_\w+)?|output_ids"
)
_WHILE_STEPS = re.compile(
    r"has_unfinished_requests|has_requests|has_work|unfinished_requests|_handle_shutdown|shutdown\w*|running|is_running|alive|stopped|_stop_event"
)
_WHILE_QUEUE = re.compile(r"queue|get_nowait|recv\w*|requests?|waiting|pending")

_WRAPPERS = frozenset(
    "enumerate zip reversed sorted list tuple tqdm trange range islice iter set progress_bar len min max map filter cycle chain".split()
)


def loop_kind(loop: LoopNode) -> LoopKind:
    """The kind of a loop, from its own header (and, for ``while`` and bare ranges, its body)."""
    if isinstance(loop, ast.While):
        return _while_kind(loop)
    if _fixed(loop.iter):
        return LoopKind.FIXED
    words = list(_words(loop.iter))
    kind = _match(words, _ITERABLES)
    if kind is None:
        kind = _match(list(_target_words(loop.target)), _TARGETS)
    if kind is None and _over_shape(loop.iter) is not None:
        kind = LoopKind.BATCH if _over_shape(loop.iter) == 0 else LoopKind.ELEMENTS
    if (
        kind in (None, LoopKind.STEPS, LoopKind.BATCH, LoopKind.ELEMENTS)
        and isinstance(loop, ast.For)
        and _decodes(loop.body)
    ):
        return LoopKind.TOKENS
    return kind or LoopKind.UNKNOWN


def _match(words: list[str], table: tuple[tuple[LoopKind, re.Pattern[str]], ...]) -> LoopKind | None:
    for kind, pattern in table:
        if any(pattern.fullmatch(word) for word in words):
            return kind
    return None


def _words(node: ast.expr) -> Iterator[str]:
    """Identifiers that name what is iterated, wrappers such as ``enumerate`` and ``range`` taken off."""
    if isinstance(node, ast.Name):
        if node.id not in _WRAPPERS:
            yield node.id.lower()
    elif isinstance(node, ast.Attribute):
        if node.attr in ("values", "items", "keys", "shape"):
            yield from _words(node.value)
        else:
            yield node.attr.lower()
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _WRAPPERS:
            for arg in node.args:
                yield from _words(arg)
        elif name in ("values", "items", "keys", "split", "chunk", "unbind", "tolist", "cpu") and isinstance(
            node.func, ast.Attribute
        ):
            yield from _words(node.func.value)
        else:
            yield name.lower()
    elif isinstance(node, (ast.Subscript, ast.Starred)):
        yield from _words(node.value)
    elif isinstance(node, ast.BinOp):
        yield from _words(node.left)
        yield from _words(node.right)
    elif isinstance(node, (ast.IfExp, ast.BoolOp)):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _words(child)


def _target_words(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            yield node.id.lower()


def _fixed(node: ast.expr) -> bool:
    """A literal list, or a literal range of a few repetitions."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return bool(node.elts) and not any(isinstance(e, ast.Starred) for e in node.elts)
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "enumerate" and node.args:
            return _fixed(node.args[0])
        if node.func.id == "range" and 1 <= len(node.args) <= 2:
            last = node.args[-1]
            return isinstance(last, ast.Constant) and isinstance(last.value, int) and last.value <= _FIXED_LIMIT
    return False


def _over_shape(node: ast.expr) -> int | None:
    """The axis of ``range(x.shape[k])``, ``range(x.size(k))`` or ``range(len(x))`` (axis 0), else None."""
    if not (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "range"
        and len(node.args) == 1
    ):
        return None
    size = node.args[0]
    index: ast.expr | None = None
    if isinstance(size, ast.Subscript) and isinstance(size.value, ast.Attribute) and size.value.attr == "shape":
        index = size.slice
    elif isinstance(size, ast.Call) and isinstance(size.func, ast.Attribute) and size.func.attr == "size" and size.args:
        index = size.args[0]
    if isinstance(index, ast.Constant) and isinstance(index.value, int):
        return index.value
    return None


def _while_kind(loop: ast.While) -> LoopKind:
    words = [
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(loop.test)
        if isinstance(node, (ast.Name, ast.Attribute))
    ]
    if any(_WHILE_STEPS.fullmatch(word) for word in words):
        return LoopKind.STEPS
    if any(_WHILE_TOKENS.fullmatch(word.lower()) for word in words) or _decodes(loop.body):
        return LoopKind.TOKENS
    if any(_WHILE_QUEUE.fullmatch(word) for word in words):
        return LoopKind.REQUESTS
    if isinstance(loop.test, ast.Constant):
        return _forever_kind(loop)
    return LoopKind.UNKNOWN


def _forever_kind(loop: ast.While) -> LoopKind:
    """``while True``: a server's loop by what it waits for, else unknown."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in (
                "get",
                "get_nowait",
                "recv",
                "recv_pyobj",
                "recv_multipart",
                "accept",
                "popleft",
                "receive_text",
                "input",
            ):
                receiver = ast.unparse(node.func.value).lower()
                if name != "get" or "queue" in receiver or receiver.endswith("q"):
                    return LoopKind.REQUESTS
            if name == "step" and "engine" in ast.unparse(node.func.value).lower():
                return LoopKind.STEPS
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "input":
            return LoopKind.REQUESTS
    return LoopKind.UNKNOWN


_PICKS = frozenset(("argmax", "multinomial", "sample", "topk", "sample_token", "sample_top_p", "sample_top_k"))
_GROWS = frozenset(("cat", "append", "concat", "hstack"))


def _decodes(body: list[ast.stmt]) -> bool:
    """Whether the body picks a next token from scores and adds it to what was generated: a decode loop."""
    picks = grows = calls_model = False
    for statement in body:
        for node in ast.walk(statement):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            picks = picks or name in _PICKS
            grows = grows or name in _GROWS
            calls_model = calls_model or name in (
                "model",
                "forward",
                "decoder",
                "lm",
                "llm",
                "transformer",
                "decode_step",
            )
    return picks and grows and calls_model
