"""Which files are read, and how each kind is taken apart."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from awp_lint.detector.finding import Finding, Problem
from awp_lint.detector.project.kinds import Kind, kind_of
from awp_lint.rules.serving.configfiles.judge import CONFIG_RULES, Judge, Surroundings
from awp_lint.rules.serving.configfiles.launches import assignments, launch
from awp_lint.rules.serving.configfiles.words import Word, commands
from awp_lint.rules.suppressions import Suppressions


@dataclass(frozen=True, slots=True)
class ConfigResult:
    """What one file gave. ``notes`` say what could not be read; they are never findings."""

    findings: tuple[Finding, ...] = ()  # suppressed ones among them
    notes: tuple[Problem, ...] = ()
    unused: tuple[Problem, ...] = ()  # suppressions that silenced nothing
    silenced: Suppressions | None = None
    template: bool = False  # left alone: what it says depends on what fills it in


def is_config_file(path: str) -> bool:
    """Whether a file of this name is one that :func:`scan_config_file` reads."""
    return kind_of(path) is not Kind.PYTHON


def scan_config_file(path: str, text: str) -> list[Finding]:
    """The findings in one file. Never raises for what is in it: what cannot be read gives none."""
    return list(read_config_file(path, text).findings)


def read_config_file(
    path: str, text: str, kind: Kind | None = None, rules: Collection[str] = CONFIG_RULES
) -> ConfigResult:
    """As :func:`scan_config_file`, for some rules only, with notes on what could not be read.

    ``kind`` where the name does not tell it. A note is fatal where the file is broken.
    """
    result = _read(path, text, kind or kind_of(path))
    findings = tuple(finding for finding in result.findings if finding.rule in rules)
    return replace(result, findings=findings, unused=_unused(path, result.silenced, rules))


def _read(path: str, text: str, kind: Kind) -> ConfigResult:
    text = text.replace("\r\n", "\n")
    if kind is Kind.DOCKER:
        return _dockerfile(path, text)
    if kind in (Kind.YAML, Kind.JSON):
        return _structured(path, text, kind)
    return _shell(path, text)


def _result(judge: Judge) -> ConfigResult:
    wrong = tuple(Problem(judge.path, message, line) for line, message in judge.silenced.problems)
    return ConfigResult(tuple(judge.findings), wrong, silenced=judge.silenced)


def _unused(path: str, silenced: Suppressions | None, rules: Collection[str]) -> tuple[Problem, ...]:
    asked = [rule for rule in CONFIG_RULES if rule in rules]
    names = () if silenced is None else silenced.unused(asked)
    return tuple(Problem(path, f"unused suppression of {name}", line) for line, name in names)


# shell ---------------------------------------------------------------------------------------------------------------


def _shell(path: str, text: str) -> ConfigResult:
    found = list(commands(text))
    judge = Judge(path, text, found[0].comments if found else {})
    variables: dict[str, str] = {}
    launches = [launch(command.words) for command in found]
    started = sum(item is not None for item in launches)
    for command, item in zip(found, launches, strict=True):
        judge.command = command.lines
        own = dict(variables)
        for name, word, value in assignments(command.words):
            own[name] = value
            judge.variable(name, value, word)
        if (command.words and command.words[0].text in ("export", "set")) or item is None:
            variables.update(own)
        if item is not None:
            judge.launch(item, Surroundings(own, _visible(own), None, started))
    return _result(judge)


def _visible(variables: dict[str, str]) -> int | None:
    """How many devices ``CUDA_VISIBLE_DEVICES`` shows."""
    value = variables.get("CUDA_VISIBLE_DEVICES", "").strip("\"'")
    return len(value.split(",")) if re.fullmatch(r"\d+(,\d+)*", value) else None


# Dockerfile ----------------------------------------------------------------------------------------------------------

_INSTRUCTION = re.compile(r"^\s*(ENV|RUN|CMD|ENTRYPOINT)\s+", re.IGNORECASE)


def _dockerfile(path: str, text: str) -> ConfigResult:
    comments = _hash_comments(text)
    judge = Judge(path, text, comments)
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
    return _result(judge)


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

#: Statements of Jinja and Go templates: what is below them depends on them.
_TEMPLATE = re.compile(r"\{%|\{\{-?\s*(if|else|end|range|with|define|include|template|toYaml)\b")
_COMMENT_JSON = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|\t', re.DOTALL)


def _structured(path: str, text: str, kind: Kind) -> ConfigResult:
    if kind is Kind.YAML and _TEMPLATE.search(text):
        return ConfigResult(template=True)
    written, comments = text, _yaml_comments(text)
    if kind is Kind.JSON:
        comments = {
            text.count("\n", 0, m.start()) + 1: m.group().lstrip("/* ").rstrip("*/ ")
            for m in _COMMENT_JSON.finditer(text)
            if m.group().startswith("/")
        }
        text = _COMMENT_JSON.sub(lambda m: m.group() if m.group().startswith('"') else _blank(m.group()), text)
    try:
        import yaml
    except ImportError:
        return ConfigResult(notes=(Problem(path, "not read: PyYAML is not installed"),))
    from awp_lint.rules.serving.configfiles.documents import read_documents

    judge = Judge(path, written, comments)
    try:
        # the C loader, where PyYAML has it, is some ten times as fast
        read_documents(yaml.compose_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)), judge)
    except yaml.YAMLError as error:
        if "{{" in text:
            return ConfigResult(template=True)
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        return ConfigResult(
            notes=(Problem(path, f"cannot be read: {getattr(error, 'problem', None) or 'not YAML'}", line, fatal=True),)
        )
    except RecursionError:
        return ConfigResult(notes=(Problem(path, "nested too deeply to be read"),))
    return _result(judge)


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
