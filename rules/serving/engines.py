"""Settings of serving engines that cost speed, read from ``engines.facts``."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass
from pathlib import Path

Setting = bool | float | str
Version = tuple[int, int]

#: Dotted names of classes that configure an engine, to the engine.
PYTHON_CLASSES: dict[str, str] = {
    "vllm.LLM": "vllm",
    "vllm.EngineArgs": "vllm",
    "vllm.AsyncEngineArgs": "vllm",
    "vllm.engine.arg_utils.EngineArgs": "vllm",
    "vllm.engine.arg_utils.AsyncEngineArgs": "vllm",
    "vllm.entrypoints.llm.LLM": "vllm",
    "sglang.Engine": "sglang",
    "sglang.Runtime": "sglang",
    "sglang.srt.server_args.ServerArgs": "sglang",
    "tensorrt_llm.LLM": "trtllm",
    "tensorrt_llm.llmapi.LLM": "trtllm",
    "tensorrt_llm.llmapi.KvCacheConfig": "trtllm",
    "lmdeploy.PytorchEngineConfig": "lmdeploy",
    "lmdeploy.TurbomindEngineConfig": "lmdeploy",
}


@dataclass(frozen=True, slots=True)
class EngineFact:
    """A value of a setting that costs speed. ``when`` is a condition as the table spells it."""

    engine: str
    names: tuple[str, ...]
    rule: str
    when: str
    since: Version | None = None
    until: Version | None = None

    def holds(self, value: Setting, version: Version | None = None) -> bool:
        """Whether a value of this setting is one that costs. An unknown version counts as the newest."""
        if version is None and self.until is not None:
            return False
        if version is not None and (
            (self.since is not None and version < self.since) or (self.until is not None and version >= self.until)
        ):
            return False
        return _meets(self.when, value)


def _meets(when: str, value: Setting) -> bool:
    if when in ("true", "false"):
        return value is (when == "true")
    if when == "off":
        return value is False or value == 0
    if when == "null":
        return isinstance(value, str) and value.lower() in ("null", "~", "none")
    if when.startswith("json:"):
        return isinstance(value, str) and _holds(value, *when[5:].split("="))
    if when.startswith("in:"):
        return isinstance(value, str) and value.lower() in when[3:].split(",")
    if isinstance(value, bool) or not isinstance(value, float):
        return False
    if when == "zero":
        return value == 0
    if when in ("negative", "positive"):
        return value < 0 if when == "negative" else value > 0
    if when.startswith("<="):
        return 0 < value <= float(when[2:])
    return 0 < value < float(when[1:])


def _holds(text: str, key: str, values: str) -> bool:
    """Whether a JSON object says one of the values for the key."""
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return isinstance(found, dict) and str(found.get(key, "")).lower() in values.split(",")


def parse(text: str) -> list[EngineFact]:
    """The facts of a table. Raises :class:`ValueError`, naming the line."""
    engine = ""
    found: list[EngineFact] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        if line.startswith("["):
            engine = line.strip("[]")
            continue
        words = line.split()
        if len(words) < 3 or not engine:
            raise ValueError(f"line {number}: name, rule and condition expected")
        bounds: dict[str, Version] = {}
        for word in words[3:]:
            key, _, version = word.partition("=")
            major, minor = version.split(".")
            bounds[key] = (int(major), int(minor))
        found.append(
            EngineFact(engine, tuple(words[0].split("|")), words[1], words[2], bounds.get("since"), bounds.get("until"))
        )
    return found


@functools.cache
def table() -> dict[tuple[str, str], tuple[EngineFact, ...]]:
    """All facts by engine and name of the setting."""
    found: dict[tuple[str, str], tuple[EngineFact, ...]] = {}
    for fact in parse((Path(__file__).parent / "engines.facts").read_text(encoding="utf-8")):
        for name in fact.names:
            found[fact.engine, name] = (*found.get((fact.engine, name), ()), fact)
    return found


def costly(engine: str, name: str, value: Setting, version: Version | None = None) -> str | None:
    """The rule that a setting of an engine breaks, None for settings that are fine or not known."""
    plain = name.strip("-").replace("_", "-").lower()
    for fact in table().get((engine, plain), ()):
        if fact.holds(value, version):
            return fact.rule
    return None


def is_switch(engine: str, name: str) -> bool:
    """Whether a setting is known to be a flag without a value, so that a word after it is an argument of its own."""
    return any(fact.when == "true" for fact in table().get((engine, name), ()))


def setting(text: str) -> Setting | None:
    """The value that a word of a command line or a scalar of a file means; None where it is filled in later."""
    plain = text.strip().strip("\"'")
    if not plain or any(mark in plain for mark in ("$", "{{", "<", "%(")):
        return None
    lowered = plain.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    try:
        found = float(plain)
    except ValueError:
        return plain
    return found if math.isfinite(found) else plain
