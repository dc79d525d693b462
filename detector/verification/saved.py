"""Priced runs in a file: kept by ``--save-profile``, read by ``--use-profile`` and ``--guard``.

``{"schema": "awp-lint-profile/1", "tool": version, "command": […], "runs": [{"profile", "findings"}, …]}``. A file may
hold several runs of one command, oldest first: from them it is known how much runs differ by themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from awp_lint import __version__
from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Copies, Evidence, Finding, PredictedSaving, Verdict
from awp_lint.detector.wholefile import write_whole

SCHEMA = "awp-lint-profile/1"
_RUNS = 20  # that a file keeps
_BULKY = ("windows", "telemetry", "picture")  # for reports, not for prices


def run_of(findings: Sequence[Finding], profile: Mapping[str, Any], evidence: Mapping[str, Any]) -> dict[str, Any]:
    """One run, ready for JSON. ``evidence``: finding id → its evidence by the contract."""
    return {
        "profile": {name: value for name, value in profile.items() if name not in _BULKY},
        "findings": [
            {
                "id": f.id,
                "rule": f.rule,
                "path": f.path,
                "line": f.span.line,
                "function": f.function,
                "expects": f.mark.expects.value if f.mark is not None else None,
                "evidence": evidence[f.id],
            }
            for f in findings
            if evidence.get(f.id) is not None
        ],
    }


def save(path: str, command: Sequence[str], run: Mapping[str, Any]) -> int:
    """Write the run, behind those of the same command that the file holds; how many it holds then.

    Raises :class:`UsageError` where the file cannot be written or is none of ours.
    """
    runs: list[Any] = []
    if Path(path).exists():
        held = load(path)
        if held["command"] == list(command):
            runs = held["runs"]
    runs = [*runs, run][-_RUNS:]
    text = json.dumps({"schema": SCHEMA, "tool": __version__, "command": list(command), "runs": runs}, indent=1)
    try:
        write_whole(path, f"{text}\n".encode())
    except OSError as error:
        raise UsageError(f"{path}: the profile cannot be written: {error.strerror}") from None
    return len(runs)


def load(path: str) -> dict[str, Any]:
    """A saved file. Raises :class:`UsageError` where it cannot be read or is none of ours."""
    try:
        held: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: the saved profile cannot be read: {error.strerror}") from None
    except ValueError:
        held = None
    if not isinstance(held, dict) or held.get("schema") != SCHEMA or not held.get("runs"):
        raise UsageError(f"{path}: not a profile saved by --save-profile")
    return held


def evidence_of(raw: Mapping[str, Any]) -> Evidence:
    """The evidence that a run's JSON holds."""
    saving = raw.get("predicted_saving")
    return Evidence(
        verdict=Verdict(raw["verdict"]),
        reason=raw["reason"],
        scope=raw["scope"],
        unit=raw["unit"],
        calls=raw["calls"],
        calls_per_unit=raw["calls_per_unit"],
        host_ms=raw["host_ms"],
        blocked_ms=raw["blocked_ms"],
        gpu_ms=raw["gpu_ms"],
        idle_ms=raw["idle_ms"],
        launches=raw["launches"],
        copies=Copies(**raw["copies"]),
        predicted_saving=PredictedSaving(**saving) if saving is not None else None,
    )


def priced(path: str, findings: Sequence[Finding]) -> tuple[dict[str, Evidence], dict[str, Any], str]:
    """What the file's last run says of the findings, its profile object, and a line for the person."""
    held = load(path)
    last = held["runs"][-1]
    known = {entry["id"]: evidence_of(entry["evidence"]) for entry in last["findings"]}
    found = {f.id: known[f.id] for f in findings if f.id in known}
    new = len(findings) - len(found)
    command = " ".join(held["command"])
    note = f"prices are those of {path} ({command}); {new} findings are not in it" if new else f"prices are from {path}"
    profile = {"windows": [], "telemetry": None, **last["profile"]}
    return found, profile, note
