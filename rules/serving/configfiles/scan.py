"""Which files are read, and how each kind is taken apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.finding import Finding, Problem
from awp_lint.rules.serving.configfiles.judge import Judge, Surroundings
from awp_lint.rules.serving.configfiles.launches import assignments, launch
from awp_lint.rules.serving.configfiles.words import Word, commands

_SHELL = re.compile(r"\.(sh|bash|zsh|ksh)$|(^|/)(entrypoint|start|run|serve)$")
_DOCKER = re.compile(r"(^|/)(Dockerfile|Containerfile)([.-][\w.-]+)?$|\.dockerfile$", re.IGNORECASE)
_YAML = re.compile(r"\.ya?ml$")
_JSON = re.compile(r"\.json$")
_MAX_BYTES = 1_000_000
_WORDS = re.compile(
    r"vllm|sglang|trtllm|tensorrt|text-generation|lmdeploy|uvicorn|gunicorn|flask run|LAUNCH_BLOCKING|DYNAMO_DISABLE"
    r"|COMPILE_DISABLE|BLOCKING_WAIT|DISTRIBUTED_DEBUG|NO_CUDA_MEMORY_CACHING|AMD_SERIALIZE|enforce[-_]eager"
    r"|enable[-_](chunked_prefill|block_reuse|prefix[-_]caching)|free_gpu_memory_fraction|TRACE_FUNCTION|PYTORCH_JIT"
)


@dataclass(frozen=True, slots=True)
class ConfigResult:
    """What one file gave. ``notes`` say what could not be read; they are never findings."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[Problem, ...] = ()


def is_config_file(path: str) -> bool:
    """Whether a file of this name is one that :func:`scan_config_file` reads."""
    return any(pattern.search(path) for pattern in (_SHELL, _DOCKER, _YAML, _JSON))


def scan_config_file(path: str, text: str) -> list[Finding]:
    """The findings in one file. Never raises for what is in it: what cannot be read gives none."""
    return list(read_config_file(path, text).findings)


def read_config_file(path: str, text: str) -> ConfigResult:
    """As :func:`scan_config_file`, with notes on what could not be read."""
    text = text.replace("\r\n", "\n")
    if len(text) > _MAX_BYTES or not _WORDS.search(text):
        return ConfigResult()
    if _DOCKER.search(path):
        return _dockerfile(path, text)
    if _YAML.search(path) or _JSON.search(path):
        return _structured(path, text)
    return _shell(path, text)


# shell ---------------------------------------------------------------------------------------------------------------


def _shell(path: str, text: str) -> ConfigResult:
    found = list(commands(text))
    judge = Judge(path, found[0].comments if found else {})
    variables: dict[str, str] = {}
    launches = [launch(command.words) for command in found]
    started = sum(item is not None for item in launches)
    for command, item in zip(found, launches, strict=True):
        own = dict(variables)
        for name, word, value in assignments(command.words):
            own[name] = value
            judge.variable(name, value, word)
        if (command.words and command.words[0].text in ("export", "set")) or item is None:
            variables.update(own)
        if item is not None:
            judge.launch(item, Surroundings(own, _visible(own), None, started))
    return ConfigResult(tuple(judge.findings))


def _visible(variables: dict[str, str]) -> int | None:
    """How many devices ``CUDA_VISIBLE_DEVICES`` shows."""
    value = variables.get("CUDA_VISIBLE_DEVICES", "").strip("\"'")
    return len(value.split(",")) if re.fullmatch(r"\d+(,\d+)*", value) else None


# Dockerfile ----------------------------------------------------------------------------------------------------------

_INSTRUCTION = re.compile(r"^\s*(ENV|RUN|CMD|ENTRYPOINT)\s+", re.IGNORECASE)


def _dockerfile(path: str, text: str) -> ConfigResult:
    comments = _hash_comments(text)
    judge = Judge(path, comments)
    variables: dict[str, str] = {}
    start: dict[str, list[Word]] = {}
    for name, body, line in _instructions(text):
        if name == "ENV":
            for key, value, word in _env(body, line):
                variables[key] = value
                judge.variable(key, value, word)
        elif name in ("CMD", "ENTRYPOINT"):
            words = _exec_form(body, line)
            if words is not None:
                start[name] = words
                continue
            for command in commands(body, line):
                _start(command.words, judge, variables)
    _start([*start.get("ENTRYPOINT", []), *start.get("CMD", [])], judge, variables)
    return ConfigResult(tuple(judge.findings))


def _start(words: list[Word], judge: Judge, variables: dict[str, str]) -> None:
    for command in _unwrapped(words):
        item = launch(command)
        own = dict(variables)
        for name, word, value in assignments(command):
            own[name] = value
            judge.variable(name, value, word)
        if item is not None:
            judge.launch(item, Surroundings(own, _visible(own)))


def _unwrapped(words: list[Word]) -> Iterator[list[Word]]:
    """The commands inside ``sh -c "…"``; other words are one command."""
    texts = [word.text for word in words]
    if len(words) >= 3 and texts[0].rpartition("/")[2] in ("sh", "bash") and texts[1] in ("-c", "-lc", "-ec"):
        for command in commands(words[2].text, words[2].line):
            yield command.words
        return
    if words:
        yield words


def _hash_comments(text: str) -> dict[int, str]:
    return {
        number: line.strip().lstrip("# ")
        for number, line in enumerate(text.split("\n"), 1)
        if line.lstrip().startswith("#")
    }


def _instructions(text: str) -> Iterator[tuple[str, str, int]]:
    """Name, body and first line of the instructions that matter; comment lines inside them become empty."""
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        match = _INSTRUCTION.match(lines[index])
        if match is None:
            index += 1
            continue
        first = index
        body = [lines[index][match.end() :]]
        while index + 1 < len(lines) and (body[-1].rstrip().endswith("\\") or lines[index].lstrip().startswith("#")):
            index += 1
            body.append("\\" if lines[index].lstrip().startswith("#") else lines[index])
        index += 1
        yield match.group(1).upper(), "\n".join(body), first + 1


def _env(body: str, line: int) -> Iterator[tuple[str, str, Word]]:
    for command in commands(body, line):
        words = command.words
        if words and "=" not in words[0].text:
            if len(words) >= 2 and not words[1].opaque:
                yield words[0].text, words[1].text, words[0]
            continue
        for word in words:
            name, equals, value = word.text.partition("=")
            if equals and not word.opaque:
                yield name, value, word


def _exec_form(body: str, line: int) -> list[Word] | None:
    """The words of ``["a", "b"]``; None for the shell form."""
    if not body.lstrip().startswith("["):
        return None
    try:
        parts = json.loads(body.replace("\\\n", "\n"))
    except ValueError:
        return None
    if not isinstance(parts, list):
        return None
    found = []
    at = 0
    for part in parts:
        text = str(part)
        position = body.find(json.dumps(text), at)
        at = max(at, position)
        lines = body.count("\n", 0, max(position, 0))
        found.append(Word(text, line + lines, 1, "$" in text or "{{" in text))
    return found


# YAML and JSON -------------------------------------------------------------------------------------------------------

_COMMENT_JSON = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


def _structured(path: str, text: str) -> ConfigResult:
    if re.search(r"\{\{|\{%", text):
        return ConfigResult(notes=(Problem(path, "a template: not read"),))
    if _JSON.search(path):
        text = _COMMENT_JSON.sub(lambda m: m.group() if m.group().startswith('"') else _blank(m.group()), text)
    try:
        import yaml
    except ImportError:
        return ConfigResult(notes=(Problem(path, "not read: PyYAML is not installed"),))
    from awp_lint.rules.serving.configfiles.documents import read_documents

    judge = Judge(path, {} if _JSON.search(path) else _yaml_comments(text))
    try:
        read_documents(yaml.compose_all(text, Loader=yaml.SafeLoader), judge)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        return ConfigResult(
            notes=(Problem(path, f"cannot be read: {getattr(error, 'problem', None) or 'not YAML'}", line),)
        )
    except RecursionError:
        return ConfigResult(notes=(Problem(path, "nested too deeply to be read"),))
    return ConfigResult(tuple(judge.findings))


def _blank(text: str) -> str:
    return "".join(char if char == "\n" else " " for char in text)


def _yaml_comments(text: str) -> dict[int, str]:
    found = {}
    for number, line in enumerate(text.split("\n"), 1):
        match = re.search(r"(?:^|\s)#\s?(.*)$", line)
        if match:
            found[number] = match.group(1).strip()
    return found


__all__ = ["ConfigResult", "is_config_file", "read_config_file", "scan_config_file"]
