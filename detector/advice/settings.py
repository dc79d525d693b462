"""How a model may be asked: from the command line and the ``llm`` table of the settings.

The settings file belongs to the code under review, so it cannot say where code and key go: the endpoint comes from the
command line or the environment, the key from the environment alone.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from awp_lint.detector.config import find_settings_file, read_table
from awp_lint.detector.errors import UsageError

HOSTED = "https://api.openai.com/v1"
KEY = "AWP_LINT_LLM_API_KEY"

_LIMITS: dict[str, tuple[int, int]] = {  # setting → the least and the most that can be meant
    "votes": (1, 15),
    "patches": (0, 100),
    "repairs": (0, 5),
    "max-calls": (1, 100_000),
    "max-tokens": (1000, 1_000_000_000),
    "max-seconds": (1, 86_400),
    "timeout": (1, 3600),
    "jobs": (1, 64),
}


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """Endpoint, models and bounds. Times in seconds; ``max_calls`` counts requests, tried again or not;
    ``max_tokens`` counts what goes in and comes out, all requests together."""

    base_url: str = HOSTED
    models: tuple[str, ...] = ()
    votes: int = 3
    patches: int = 3
    repairs: int = 1
    max_calls: int = 40
    max_tokens: int = 200_000
    max_seconds: int = 180
    timeout: int = 60
    jobs: int = 4
    dry_run: bool = False
    cache: bool = True
    key: str | None = None

    def __repr__(self) -> str:
        """Without the key, wherever it may be printed."""
        return f"LlmSettings(base_url={self.base_url!r}, models={self.models!r})"


def resolve(options: argparse.Namespace, folder: Path, environment: Mapping[str, str] = os.environ) -> LlmSettings:
    """The settings in force; ``folder`` is where settings are looked for. Raises :class:`UsageError`."""
    table: Mapping[str, Any] = {}
    path = options.config if options.config is not None else (None if options.isolated else find_settings_file(folder))
    if path is not None:
        table = (read_table(path) or {}).get("llm", {})
        _check(table, path)
    numbers: dict[str, int] = {}
    for name in _LIMITS:
        field = name.replace("-", "_")
        given = getattr(options, f"llm_{field}", None)
        if given is not None:
            numbers[field] = given
            _within(f"--llm-{name}", name, given)
        elif name in table:
            numbers[field] = table[name]
    models = options.llm_model or _models(table.get("model", ()))
    if not models:
        raise UsageError("--llm needs a model: --llm-model NAME")
    base_url = options.llm_base_url or environment.get("OPENAI_BASE_URL") or HOSTED
    _check_url(base_url)
    # A key made for one place is not sent to another.
    key = environment.get(KEY) or (None if options.llm_base_url else environment.get("OPENAI_API_KEY"))
    return LlmSettings(
        base_url=base_url,
        models=tuple(models),
        dry_run=options.llm_dry_run,
        cache=not options.no_cache,
        key=key,
        **numbers,
    )


def _check(table: Any, path: Path) -> None:
    if not isinstance(table, dict):
        raise UsageError(f"{path}: llm must be a table")
    for name, value in table.items():
        if name == "model":
            _models(value, path)
        elif name in _LIMITS:
            if type(value) is not int:
                raise UsageError(f"{path}: llm.{name} must be a whole number")
            _within(f"{path}: llm.{name}", name, value)
        elif name in ("base-url", "api-key", "key"):
            raise UsageError(f"{path}: llm.{name} cannot be set in a file of the project: use --llm-base-url and {KEY}")
        else:
            raise UsageError(f"{path}: unknown setting 'llm.{name}'")


def _within(words: str, name: str, value: int) -> None:
    least, most = _LIMITS[name]
    if not least <= value <= most:
        raise UsageError(f"{words} must be between {least} and {most}, not {value}")


def _models(value: Any, path: Path | None = None) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else (None,)
    if not all(isinstance(name, str) and name for name in names):
        raise UsageError(f"{path}: llm.model must be a name or a list of names")
    return names


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(f"--llm-base-url takes a URL such as http://127.0.0.1:8000/v1, not {url!r}")
    if parts.username or parts.password:
        raise UsageError(f"--llm-base-url: no name or password in the URL; the key comes from {KEY}")
