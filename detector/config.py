"""Settings: the same names on the command line and in ``[tool.awp-lint]`` of ``pyproject.toml``.

The nearest ``pyproject.toml`` above the working folder that holds the table wins; ``awp-lint.toml`` holds the same keys
at its top level. Command-line values override file values. An unknown key or a wrong type is a :class:`UsageError` that
names the file and the key.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Confidence
from awp_lint.detector.project.kinds import CONFIG_PATTERNS
from awp_lint.detector.semantics.view import Target

DEFAULT_EXCLUDES = (
    ".git", ".venv", "venv", "env", "build", "dist", "node_modules", "__pycache__", "site-packages",
)  # fmt: skip

DEVICES = ("cuda", "rocm", "mps", "cpu")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that decides which findings a scan gives. Hashable parts only, since it is a part of cache keys."""

    select: tuple[str, ...] = ("AWP",)
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    confidence: Confidence = Confidence.MEDIUM
    include: tuple[str, ...] = ("*.py", "*.ipynb", *CONFIG_PATTERNS)
    exclude: tuple[str, ...] = DEFAULT_EXCLUDES
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    entry_points: tuple[tuple[str, str], ...] = ()  # (function pattern, frequency such as "request×token")
    target: Target = field(default_factory=Target)
    jobs: int = 0  # 0: one a core
    cache: bool = True
    ledger: bool = field(default=True, repr=False)  # whether predictions are kept, see ``awp_lint.detector.ledger``
    baseline: str | None = field(default=None, repr=False)  # absolute; decides what is shown, not what is found

    def selects(self, rule: str) -> bool:
        """Whether a rule id is switched on: the longest matching prefix decides, ``ignore`` wins a tie."""
        chosen = max((len(p) for p in (*self.select, *self.extend_select) if rule.startswith(p)), default=-1)
        dropped = max((len(p) for p in self.ignore if rule.startswith(p)), default=-1)
        return chosen > dropped


_LISTS = {"select", "ignore", "extend-select", "include", "exclude"}
_TABLES = {"per-file-ignores", "entry-points"}
_TARGETS = {"target-torch", "target-transformers", "target-device"}


def find_settings_file(start: Path) -> Path | None:
    """The nearest settings file at or above ``start``, or None."""
    for folder in (start, *start.parents):
        own = folder / "awp-lint.toml"
        if own.is_file():
            return own
        project = folder / "pyproject.toml"
        if project.is_file() and read_table(project) is not None:
            return project
    return None


def _parse_toml(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with path.open("rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None


def read_table(path: Path) -> Mapping[str, Any] | None:
    """Our table of a settings file, None where it has none. Raises :class:`UsageError`."""
    document = _parse_toml(path)
    if path.name != "pyproject.toml":
        return document
    table = document.get("tool", {}).get("awp-lint")
    return table if isinstance(table, dict) else None


def _strings(path: Path, key: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise UsageError(f"{path}: {key} must be a list of strings")


def parse_version(text: str) -> tuple[int, int]:
    """``2.5`` or ``2.5.1+cu121`` → ``(2, 5)``. Raises :class:`ValueError`."""
    major, _, rest = text.partition(".")
    minor = rest.split(".")[0].split("+")[0] or "0"
    return int(major), int(minor)


def _version(path: Path, key: str, value: Any) -> tuple[int, int]:
    try:
        return parse_version(str(value))
    except ValueError:
        raise UsageError(f"{path}: {key} must be a version such as 2.5, not {value!r}") from None


def settings_from_file(path: Path, base: Settings) -> Settings:
    """``base`` with what the file says. Raises :class:`UsageError` naming file and key."""
    table = read_table(path) or {}
    changes: dict[str, Any] = {}
    target = base.target
    for key, value in table.items():
        name = key.replace("-", "_")
        if key in _LISTS:
            changes[name] = _strings(path, key, value)
        elif key == "confidence":
            changes[name] = _confidence(path, value)
        elif key in _TABLES:
            if not isinstance(value, dict):
                raise UsageError(f"{path}: {key} must be a table")
            if key == "per-file-ignores":
                changes[name] = tuple((pattern, _strings(path, key, ids)) for pattern, ids in value.items())
            else:
                changes[name] = tuple((pattern, str(frequency)) for pattern, frequency in value.items())
        elif key in _TARGETS:
            target = _with_target(path, target, key, value)
        elif key == "baseline" and isinstance(value, str):
            changes[name] = str(path.absolute().parent / value)
        elif (key == "jobs" and isinstance(value, int)) or (key == "ledger" and isinstance(value, bool)):
            changes[name] = value
        elif key in ("profile", "llm"):
            continue  # read where they are used
        else:
            raise UsageError(f"{path}: unknown setting {key!r}")
    if "exclude" in changes:
        changes["exclude"] = (*DEFAULT_EXCLUDES, *changes["exclude"])
    return dataclasses.replace(base, target=target, **changes)


def _confidence(path: Path, value: Any) -> Confidence:
    try:
        return Confidence(value)
    except ValueError:
        raise UsageError(f"{path}: confidence must be high, medium or low, not {value!r}") from None


def _with_target(path: Path, target: Target, key: str, value: Any) -> Target:
    if key == "target-device":
        if value not in DEVICES:
            raise UsageError(f"{path}: {key} must be one of {', '.join(DEVICES)}, not {value!r}")
        return dataclasses.replace(target, device=value)
    version = _version(path, key, value)
    if key == "target-torch":
        return dataclasses.replace(target, torch=version)
    return dataclasses.replace(target, transformers=version)


def load_settings(
    working_folder: Path, explicit: Path | None, isolated: bool, target: Target, overrides: Sequence[tuple[str, Any]]
) -> Settings:
    """Defaults, then the project's requirements for the target versions, then the file, then the command line.

    ``target`` is what the project's requirement files ask for; ``overrides`` are (field name, value) pairs from the
    command line, with ``target_torch`` and the like for the target's fields.
    """
    settings = Settings(target=target)
    path = explicit if explicit is not None else (None if isolated else find_settings_file(working_folder))
    if explicit is not None and not explicit.is_file():
        raise UsageError(f"{explicit}: no such settings file")
    if path is not None:
        settings = settings_from_file(path, settings)
    changed: dict[str, Any] = {}
    chosen = settings.target
    for name, value in overrides:
        if name.startswith("target_"):
            chosen = dataclasses.replace(chosen, **{name.removeprefix("target_"): value})
        else:
            changed[name] = value
    return dataclasses.replace(settings, target=chosen, **changed)
