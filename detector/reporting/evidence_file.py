"""Prices that a profile run elsewhere wrote to a file (``awp-lint --format json --output FILE --profile …``).

The file is not trusted: it may come from a job that ran the change's own code. It is bounded, checked against the
report's schema, and only known fields with finite figures are read; its texts go into comments like any other text
from outside.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Copies, Evidence, PredictedSaving, Verdict
from awp_lint.detector.reporting import json_report

MAX_BYTES = 32_000_000
MAX_FINDINGS = 20_000
_MAX_TEXT = 500
_MAX_FIGURE = 1e12


def read(path: str) -> dict[str, Evidence]:
    """Evidence by finding id. Raises :class:`UsageError` for a file that is no report of a profile run."""
    try:
        file = Path(path)
        if file.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path}: larger than {MAX_BYTES // 1_000_000} MB: not an evidence file")
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: the evidence cannot be read: {error.strerror}") from None
    return parse(data, path)


def parse(data: bytes, name: str) -> dict[str, Evidence]:
    """Evidence by finding id. Raises :class:`UsageError` with one line that begins with ``name``."""
    import jsonschema

    try:
        document = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: the evidence is not JSON: {str(error)[:200]}") from None
    if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
        raise UsageError(f"{name}: not an awp-lint report; make one with --format json --output FILE --profile …")
    if len(document["findings"]) > MAX_FINDINGS:
        raise UsageError(f"{name}: more than {MAX_FINDINGS:,} findings: not an evidence file")
    try:
        jsonschema.Draft202012Validator(json_report.schema()).validate(document)
    except jsonschema.ValidationError as error:
        where = "/".join(str(part) for part in error.absolute_path) or "the report"
        raise UsageError(f"{name}: not an {json_report.SCHEMA} report: {where}: {error.message[:160]}") from None
    found: dict[str, Evidence] = {}
    for row in document["findings"]:
        if row["evidence"] is not None:
            found[row["id"]] = _evidence(row["evidence"], name)
    return found


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no figure")


def _figure(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if not math.isfinite(value) or abs(value) > _MAX_FIGURE:
        raise UsageError(f"{name}: a figure that cannot be: {str(value)[:40]}")
    return float(value)


def _number(value: Any, name: str) -> float:
    return _figure(value, name) or 0.0


def _evidence(row: dict[str, Any], name: str) -> Evidence:
    saving = row["predicted_saving"]
    copies = row["copies"]
    return Evidence(
        verdict=Verdict(row["verdict"]),
        reason=row["reason"][:_MAX_TEXT],
        scope=row["scope"],
        unit=row["unit"],
        calls=int(_number(row["calls"], name)),
        calls_per_unit=_number(row["calls_per_unit"], name),
        host_ms=_figure(row["host_ms"], name),
        blocked_ms=_figure(row["blocked_ms"], name),
        gpu_ms=_figure(row["gpu_ms"], name),
        idle_ms=_figure(row["idle_ms"], name),
        launches=_figure(row["launches"], name),
        copies=Copies(
            _number(copies["h2d_bytes"], name), _number(copies["d2h_bytes"], name), pageable=copies["pageable"]
        ),
        predicted_saving=None
        if saving is None
        else PredictedSaving(
            ms=_number(saving["ms"], name),
            pct=_number(saving["pct"], name),
            low_pct=_number(saving["low_pct"], name),
            high_pct=_number(saving["high_pct"], name),
            assumption=saving["assumption"][:_MAX_TEXT],
        ),
    )
