"""Compose files, Kubernetes manifests and engine configurations as YAML nodes, which keep their lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from awp_lint.rules.numbers import whole
from awp_lint.rules.serving.configfiles.judge import Judge, Surroundings
from awp_lint.rules.serving.configfiles.launches import Launch, Option, assignments, engine_of_image, launch, options
from awp_lint.rules.serving.configfiles.words import Word, commands
from awp_lint.rules.serving.engines import setting, table

if TYPE_CHECKING:
    import yaml

#: Settings that tell an engine's configuration file from any other mapping: two of one engine must be there.
_TELLING: dict[str, frozenset[str]] = {
    "vllm": frozenset({
        "enforce-eager", "gpu-memory-utilization", "max-num-seqs", "max-num-batched-tokens", "enable-prefix-caching",
        "enable-chunked-prefill", "tensor-parallel-size", "max-model-len", "served-model-name", "kv-cache-dtype",
    }),
    "sglang": frozenset({
        "mem-fraction-static", "disable-cuda-graph", "disable-radix-cache", "chunked-prefill-size", "model-path",
        "max-running-requests", "tp-size",
    }),
    "trtllm": frozenset({
        "enable-chunked-prefill", "enable-block-reuse", "free-gpu-memory-fraction", "kv-cache-config",
        "cuda-graph-config", "max-batch-size", "max-num-tokens", "pytorch-backend-config",
    }),
}  # fmt: skip


_ARGUMENTS = ("entrypoint", "command", "args")
_ENGINES = ("vllm", "sglang")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def read_documents(documents: Iterable[yaml.Node | None], judge: Judge) -> None:
    """Judge every server, variable and engine setting in the documents. Raises ``yaml.YAMLError``."""
    import yaml

    for document in documents:
        seen: set[int] = set()  # anchors make a node appear twice
        stack: list[tuple[yaml.Node | None, bool]] = [(document, False)]
        while stack:
            node, shared = stack.pop()
            if node is None or id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, yaml.MappingNode):
                shared = shared or _shares_device(node)
                judge.shared = shared
                if _is_container(node):
                    _container(node, judge)
                else:
                    _engine(node, judge)
                stack += [(value, shared) for _, value in reversed(node.value)]
            elif isinstance(node, yaml.SequenceNode):
                stack += [(item, shared) for item in reversed(node.value)]


def _shares_device(node: yaml.MappingNode) -> bool:
    """Whether less than a whole device is asked for: ``requestGPU: 0.5``."""
    asked = _named(_items(node).get("requestGPU"))
    return re.fullmatch(r"0?\.\d+", asked) is not None


def _items(node: yaml.Node | None) -> dict[str, yaml.Node]:
    import yaml

    if not isinstance(node, yaml.MappingNode):
        return {}
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _path(node: yaml.Node, *names: str) -> yaml.Node | None:
    current: yaml.Node | None = node
    for name in names:
        current = _items(current).get(name)
    return current


def _is_container(node: yaml.Node) -> bool:
    names = _items(node)
    if "args" in names and ("modelFormat" in names or _named(names.get("engine")).lower() in _ENGINES):
        return True  # a predictor or model of KServe, KubeAI and the like hands its arguments to the engine
    return "image" in names or ("build" in names and bool({"command", "entrypoint", "environment"} & set(names)))


def _word(node: yaml.Node, text: str | None = None) -> Word:
    value = text if text is not None else str(node.value)
    mark = node.start_mark
    return Word(value, mark.line + 1, mark.column + 1, "$" in value)


def _started(names: dict[str, yaml.Node]) -> list[list[Word]]:
    """The commands of a container: its argument lists joined, what ``sh -c`` runs, or the lines of a string."""
    import yaml

    parts: list[yaml.Node] = []
    for key in _ARGUMENTS:
        node = names.get(key)
        if isinstance(node, yaml.SequenceNode):
            parts += [item for item in node.value if isinstance(item, yaml.ScalarNode)]
        elif isinstance(node, yaml.ScalarNode) and node.value:
            if not parts:
                return _script(node)
            parts.append(node)
    texts = [str(part.value) for part in parts]
    if len(parts) >= 3 and texts[0].rpartition("/")[2] in ("sh", "bash") and texts[1].startswith("-"):
        return _script(parts[2])
    return [[_word(part) for part in parts]] if parts else []


def _script(node: yaml.Node) -> list[list[Word]]:
    """The commands of a scalar. Of a folded one the lines are not known, so all words stand on its first."""
    line = node.start_mark.line + 1
    style = getattr(node, "style", None)
    first = line + 1 if style in ("|", ">") else line
    found = [command.words for command in commands(str(node.value), first)]
    if style != "|":
        found = [[Word(w.text, first, w.column, w.opaque) for w in words] for words in found]
    return found


def _container(node: yaml.Node, judge: Judge) -> None:
    names = _items(node)
    image = getattr(names.get("image"), "value", "")
    engine = engine_of_image(image) if isinstance(image, str) else None
    if _named(_path(node, "modelFormat", "name")) in ("huggingface", "vllm"):
        engine = "vllm"
    elif _named(names.get("engine")).lower() in _ENGINES:
        engine = _named(names.get("engine")).lower()
    variables: dict[str, str] = {}
    for name, value, word in _variables(names.get("environment") or names.get("env")):
        variables[name] = value
        judge.variable(name, value, word, engine)
    started: list[tuple[Launch, list[Word]]] = []
    for words in _started(names):
        found = launch(words)
        if found is None and engine is not None and words and words[0].text.startswith("-"):
            found = Launch(engine, words[0], list(options(words)))
        if found is not None:
            started.append((found, words))
    for found, words in started:
        judge.command = _lines(words, *(names.get(key) for key in _ARGUMENTS))
        own = dict(variables)
        for name, word, value in assignments(words):
            own[name] = value
            judge.variable(name, value, word)
        judge.launch(found, Surroundings(own, _devices(node), _cores(node), len(started), str(image)))
    judge.command = None


def _lines(words: list[Word], *lists: yaml.Node | None) -> tuple[int, int]:
    """The lines of an argument list; of one whose items stand below its key the key's too, for comments above it."""
    lines = [word.line for word in words]
    below = any(getattr(node, "flow_style", None) is False for node in lists)
    return min(lines) - below, max(lines)


def _named(node: yaml.Node | None) -> str:
    value = getattr(node, "value", "")
    return value if isinstance(value, str) else ""


def _variables(node: yaml.Node | None) -> Iterator[tuple[str, str, Word]]:
    """Compose's mapping or list of ``NAME=value``, Kubernetes' list of ``name`` and ``value``."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        for name, value in _items(node).items():
            if isinstance(value, yaml.ScalarNode):
                yield name, str(value.value), _word(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            if isinstance(item, yaml.ScalarNode):
                left, _, right = str(item.value).partition("=")
                yield left, right, _word(item)
            else:
                pair = _items(item)
                if isinstance(pair.get("name"), yaml.ScalarNode) and isinstance(pair.get("value"), yaml.ScalarNode):
                    yield str(pair["name"].value), str(pair["value"].value), _word(pair["value"])


def _devices(node: yaml.Node) -> int | None:
    limit = _path(node, "resources", "limits", "nvidia.com/gpu") or _path(
        node, "resources", "requests", "nvidia.com/gpu"
    )
    value = getattr(limit, "value", None)
    if value is None:
        reserved = _path(node, "deploy", "resources", "reservations", "devices")
        for item in getattr(reserved, "value", []):
            value = getattr(_items(item).get("count"), "value", None)
    return whole(value) if isinstance(value, str) else None


def _cores(node: yaml.Node) -> float | None:
    limit = (
        _path(node, "resources", "limits", "cpu") or _path(node, "deploy", "resources", "limits", "cpus")
        or _path(node, "cpus")
    )  # fmt: skip
    value = getattr(limit, "value", None)
    if not isinstance(value, str):
        return None
    found = setting(value.removesuffix("m"))
    if not isinstance(found, float):
        return None
    return found / 1000 if value.endswith("m") else found


def _engine(node: yaml.MappingNode, judge: Judge) -> None:
    """The settings of an engine, where a mapping holds enough of them to be told from any other mapping."""
    import yaml

    found = {_flag(name): value for name, value in _items(node).items()}
    engine = next((name for name, telling in _TELLING.items() if len(telling & set(found)) >= 2), None)
    if engine is None:
        return
    for section, inside in list(found.items()):
        found.update({f"{section}.{_flag(name)}": deep for name, deep in _items(inside).items()})
    for name, value in found.items():
        if (engine, name) in table() and isinstance(value, yaml.ScalarNode):
            mark = value.start_mark
            word = Word(f"{name.rpartition('.')[2]}: {value.value}", mark.line + 1, mark.column + 1)
            known = setting(str(value.value))
            if known is not None:
                judge.option(engine, Option(name, known, word))
    extra = found.get("extra-args")
    if isinstance(extra, yaml.SequenceNode):
        words = [_word(item) for item in extra.value if isinstance(item, yaml.ScalarNode)]
        judge.command = _lines(words, extra) if words else None
        for option in options(words):
            judge.option(engine, option)
        judge.command = None


def _flag(name: str) -> str:
    """A setting as the command line spells it: ``maxModelLen`` and ``max_model_len`` are ``max-model-len``."""
    return _HUMP.sub("-", name).replace("_", "-").lower()
