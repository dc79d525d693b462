"""What a command line launches, and with which settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from awp_lint.rules.serving.configfiles.words import Word
from awp_lint.rules.serving.engines import Setting, setting

_MODULES = {
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "sglang.launch_server": "sglang",
    "lmdeploy.serve.openai.api_server": "lmdeploy",
    "dynamo.vllm": "vllm",
    "dynamo.sglang": "sglang",
    "dynamo.trtllm": "trtllm",
}
_PROGRAMS = {"trtllm-serve": "trtllm", "text-generation-launcher": "tgi"}
_IMAGES = (
    (re.compile(r"(^|/)vllm-openai(:|@|$)"), "vllm"),
    (re.compile(r"(^|/)text-generation-inference(:|@|$)"), "tgi"),
)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PREFIXES = frozenset({"exec", "nohup", "time", "sudo", "env", "export", "command", "then", "do", "else", "if", "set"})


@dataclass(slots=True)
class Option:
    """One setting of a launch, where it stands. ``value`` is None where it is filled in later."""

    name: str
    value: Setting | None
    word: Word


@dataclass(slots=True)
class Launch:
    """A server that is started. ``engine`` is one of the table's, or ``uvicorn``, ``gunicorn``, ``flask``."""

    engine: str
    word: Word
    options: list[Option] = field(default_factory=list)
    said: str = ""  # its arguments, whatever they are

    def settings(self) -> dict[str, Setting | None]:
        """The settings by name, the last one of a name wins as on a command line."""
        return {option.name: option.value for option in self.options}


def engine_of_image(image: str) -> str | None:
    """The engine whose flags an image takes as its arguments."""
    return next((engine for pattern, engine in _IMAGES if pattern.search(image)), None)


def assignments(words: Sequence[Word]) -> Iterator[tuple[str, Word, str]]:
    """Variables that a command sets: ``NAME=value`` before it, ``export NAME=value``, ``-e NAME=value``."""
    leading = True
    for index, word in enumerate(words):
        match = _ASSIGNMENT.fullmatch(word.text)
        flag = index > 0 and words[index - 1].text in ("-e", "--env")
        if match and (leading or flag) and not word.opaque:
            yield match.group(1), word, match.group(2)
        elif not match and word.text not in _PREFIXES:
            leading = False


def launch(words: Sequence[Word]) -> Launch | None:
    """The server that a command starts, None for any other command."""
    if not words or words[0].text in (
        "echo",
        "printf",
        "pip",
        "pip3",
        "apt",
        "apt-get",
        "uv",
        "which",
        "grep",
        "pkill",
    ):
        return None
    for index, word in enumerate(words):
        text = word.text.rpartition("/")[2]
        following = words[index + 1].text if index + 1 < len(words) else ""
        engine, rest = None, index + 1
        if text in ("vllm", "lmdeploy", "sglang") and following == "serve":
            engine, rest = text, index + 2
        elif text == "-m" and following in _MODULES:
            engine, rest = _MODULES[following], index + 2
        elif text in _PROGRAMS:
            engine = _PROGRAMS[text]
        elif text in ("uvicorn", "gunicorn") and _starts(words, index):
            engine = text
        elif text == "flask" and following == "run":
            engine, rest = "flask", index + 2
        elif words[0].text.rpartition("/")[2] in ("docker", "podman", "sudo") and (found := engine_of_image(word.text)):
            engine = found
        if engine is not None:
            arguments = words[rest:]
            return Launch(engine, word, list(options(arguments)), " ".join(word.text for word in arguments))
    return None


def _starts(words: Sequence[Word], index: int) -> bool:
    """Whether the word is the program, not an argument of another one."""
    before = [word.text for word in words[:index]]
    return all(text in _PREFIXES or "=" in text or text in ("-m", "run") or "python" in text for text in before)


def options(words: Sequence[Word]) -> Iterator[Option]:
    """The settings of an argument list."""
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not word.text.startswith("-") or word.text in ("-", "--"):
            continue
        name, equals, value = word.text.lstrip("-").partition("=")
        name = name.replace("_", "-").lower()
        if equals:
            yield Option(name, None if word.opaque else setting(value), word)
            continue
        following = words[index] if index < len(words) else None
        if following is not None and not _is_flag(following):
            yield Option(name, None if following.opaque else setting(following.text), word)
            index += 1
            continue
        if name.startswith("no-"):
            yield Option(name[3:], False, word)
        else:
            yield Option(name, True, word)


def _is_flag(word: Word) -> bool:
    return word.text.startswith("-") and not re.fullmatch(r"-\d+(\.\d+)?", word.text)
