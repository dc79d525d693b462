"""The page: the JSON report and the sources it speaks of become one HTML file.

The template escapes every text; data for the charts travels as JSON without ``<``, ``>`` and ``&``; and the page's
policy lets no script run but the two in it, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from awp_lint.detector.errors import UsageError
from awp_lint.detector.reporting import words
from awp_lint.detector.reporting.html import cards, compare, device, head, view
from awp_lint.detector.reporting.html.source import Reader
from awp_lint.detector.reporting.metrics import METRICS, Metric

if TYPE_CHECKING:
    from markupsafe import Markup

_MAX_SOURCE = 4_000_000  # bytes of a file that is read for an excerpt
_HALF = re.compile("[\ud800-\udfff]")  # what stands for a byte that is no UTF-8, as names of files may hold
_SHADES = ("--c-launch", "--c-sync", "--t-kernel", "--c-host")
_CURVES: tuple[tuple[tuple[str, ...], str, float | None], ...] = (
    (("gpu_util_pct", "sm_active_pct", "tensor_active_pct", "dram_active_pct"), "%", 100.0),
    (("sm_clock_mhz",), "MHz", None),
    (("power_w",), "W", None),
    (("memory_used_bytes",), "GiB", None),
    (("temperature_c",), "°C", None),
    (("pcie_tx_kb_s", "pcie_rx_kb_s"), "MB/s", None),
)
_SECTIONS = (
    "run", "whole", "proof", "guard", "load", "timeline", "idle", "kernels", "launches", "roofline", "copies",
    "communication", "counters", "memory", "telemetry", "unit_times", "advice", "missing",
)  # fmt: skip
_SCALES = {"GiB": 2**30, "MB/s": 1000.0}


def render(data: Mapping[str, Any], read: Reader, other: Mapping[str, Any] | None = None, other_name: str = "") -> str:
    """The page. ``data`` and ``other`` (an earlier run to compare with) are reports of the ``awp-lint/1`` schema."""
    import jinja2

    profile = data["profile"]
    charts = profile is not None
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=False)
    environment.filters |= {"code": _with_code, "num": words.number, "pct": words.percent, "size": words.size}
    licence = f"/*!\n{_asset('uPlot-LICENSE')}*/\n"
    scripts = {"uplot": licence + _asset("uPlot.iife.min.js") if charts else "", "script": _asset("page.js")}
    shown: dict[str, Any] = {
        "title": _title(data),
        "css": _markup((_asset("uPlot.min.css") if charts else "") + _asset("page.css")),
        "script_hashes": _markup(" ".join(_hash(text) for text in scripts.values() if text)),
        "uplot": _markup(scripts["uplot"]),
        "script": _markup(scripts["script"]),
        "charts": charts,
        "version": data["tool"]["version"],
        "head": head.headline(data),
        "meta": _meta(data),
        "findings": cards.findings(data, read),
        "notes": data["summary"].get("notes") or [],
        "compare": compare.sections(data, other, other_name) if other is not None else None,
        **dict.fromkeys(_SECTIONS),
        "unit": "run",
    }  # fmt: skip
    if profile is not None:
        shown |= _run_sections(data, profile)
    used = _used_metrics(shown)
    shown["definitions"] = used if charts else []
    shown["nav"] = _nav(shown)
    shown["payload"] = _markup(_script_json(_payload(shown, used)))
    text = environment.from_string(_asset("page.html.j2")).render(shown)
    return _HALF.sub("\ufffd", text)


def reader(root: Path | None = None) -> Reader:
    """Reads the sources that findings lie in, each file once; None for what cannot be read."""
    known: dict[tuple[str, int | None], str | None] = {}

    def read(path: str, cell: int | None) -> str | None:
        if (path, cell) not in known:
            known[path, cell] = _text(root / path if root is not None else Path(path), cell)
        return known[path, cell]

    return read


def _text(path: Path, cell: int | None) -> str | None:
    from awp_lint.detector.project.source import Source, SourceError

    try:
        if path.stat().st_size > _MAX_SOURCE:
            return None
        raw = path.read_bytes()
        if cell is None:
            return Source.decode(str(path), raw).text if path.suffix in (".py", ".pyi") else raw.decode()
        body = json.loads(raw)["cells"][cell - 1]["source"]
        return "".join(body) if isinstance(body, list) else str(body)
    except (OSError, SourceError, ValueError, SyntaxError, KeyError, IndexError, TypeError):
        return None


def _run_sections(data: Mapping[str, Any], profile: Mapping[str, Any]) -> dict[str, Any]:
    picture = profile.get("picture") or {}
    communication = picture.get("communication")
    return {
        "unit": profile["unit"],
        "run": view.run(data),
        "whole": head.whole(profile),
        "proof": view.proof(profile),
        "guard": view.guard(profile),
        "load": view.load(profile),
        "timeline": picture.get("timeline"),
        "idle": device.idle(profile),
        "kernels": device.kernels(profile),
        "launches": device.launches(profile),
        "roofline": device.roofline(profile),
        "copies": picture.get("copies") or None,
        "communication": communication if communication and communication["ms"] else None,
        "counters": profile.get("counters"),
        "memory": device.memory(profile),
        "memory_curve": (profile.get("memory") or {}).get("curve"),
        "telemetry": device.telemetry(profile),
        "curves": _curves(profile),
        "unit_times": picture.get("unit_times"),
        "missing": view.not_measured(profile),
        "advice": view.advice(data),
    }


def _title(data: Mapping[str, Any]) -> str:
    count = sum(finding["suppressed"] is None for finding in data["findings"])
    return f"awp-lint: {words.plural(count, 'finding')}"


def _meta(data: Mapping[str, Any]) -> list[str]:
    target, profile = data["target"], data["profile"]
    texts = []
    if profile is not None and profile.get("command"):
        texts.append(" ".join(profile["command"]))
    if profile is not None and profile.get("started"):
        texts.append(profile["started"])
    if profile is not None:
        traced = ((profile.get("picture") or {}).get("device") or {}).get("name")
        devices = (profile.get("telemetry") or {}).get("devices") or []
        name = traced or (devices[0]["name"] if devices else "")
        if name or profile["gpu_busy_ms"] is None:
            texts.append(name or "no accelerator")
    else:
        torch = f"torch {target['torch']}" if target["torch"] else "newest torch"
        texts.append(f"for {torch} on {target['device']}")
    texts.append(f"{words.plural(data['summary']['files'], 'file')}, {words.number(data['summary']['lines'])} lines")
    return texts


def _nav(shown: Mapping[str, Any]) -> list[tuple[str, str]]:
    wanted = (
        ("compare", "compare", "Comparison"), ("guard", "guard", "Guard"), ("findings", "findings", "Findings"),
        ("timeline", "timeline-section", "Timeline"), ("idle", "idle", "Idle time"),
        ("kernels", "kernels", "Kernels" if shown["kernels"] and shown["kernels"]["device"] else "Operators"),
        ("roofline", "roofline-section", "Roofline"), ("launches", "launches", "Launches"),
        ("copies", "copies", "Copies"), ("counters", "counters", "Counters"), ("memory", "memory", "Memory"),
        ("telemetry", "telemetry", "Device"), ("advice", "advice", "Next"), ("missing", "missing", "Not measured"),
        ("run", "run", "Run"), ("definitions", "definitions", "Definitions"),
    )  # fmt: skip
    found = [(target, title) for key, target, title in wanted if shown.get(key)]
    return found if len(found) > 1 else []


def _curves(profile: Mapping[str, Any]) -> dict[str, Any] | None:
    shown = device.telemetry(profile)
    series: Mapping[str, Sequence[float | None]] = shown["series"] if shown else {}
    if len(series.get("t_s", ())) < 3:
        return None
    charts = []
    for names, unit, top in _CURVES:
        rows = []
        for place, name in enumerate(names):
            values = series.get(name)
            if values is None:
                continue
            scale = _SCALES.get(unit, 1.0)
            scaled = [None if value is None else float(f"{value / scale:.5g}") for value in values]
            shade = _SHADES[place] if len(names) > 1 else "--accent"
            rows.append({"title": METRICS[name].title, "shade": shade, "values": scaled})
        if rows:
            charts.append({"unit": unit, "top": top, "series": rows})
    windows = [
        [window["start_s"], round(window["start_s"] + window["seconds"], 3), window["kind"]]
        for window in profile["windows"]
        if "start_s" in window
    ]
    return {"t_s": series["t_s"], "charts": charts, "windows": windows}


def _used_metrics(shown: Mapping[str, Any]) -> list[Metric]:
    """The metrics that the page can name, in the table's order."""
    text = json.dumps(
        {key: value for key, value in shown.items() if key not in ("timeline", "findings", "css")}, default=str
    )
    template = _asset("page.html.j2")
    named = set(re.findall(r'"metric": "(\w+)"', text)) | set(re.findall(r'"(\w+)"', template))
    named |= {one["metric"] for card in shown["findings"]["cards"] for one in card["figures"]} | {"predicted_saving"}
    return [metric for metric in METRICS.values() if metric.name in named]


def _payload(shown: Mapping[str, Any], used: Sequence[Metric]) -> dict[str, Any]:
    metrics = {
        m.name: {"title": m.title, "definition": m.definition, "source": m.source, "healthy": m.healthy} for m in used
    }
    return {
        "metrics": metrics,
        **{key: shown.get(key) for key in ("timeline", "roofline", "unit_times", "curves", "memory_curve")},
    }


def _with_code(text: str) -> Markup:
    """Words with what stands between backticks as code, all of it escaped."""
    from markupsafe import Markup, escape

    parts = text.split("`")
    if len(parts) % 2 == 0:  # one without a partner
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts)
    )


def _script_json(value: Any) -> str:
    """JSON that may stand inside a script element whatever its texts hold."""
    text = json.dumps(_finite(value), ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(value: Any) -> Any:
    """The value with figures that JSON has no word for as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value


def _asset(name: str) -> str:
    return resources.files("awp_lint.detector.reporting.html").joinpath("assets", name).read_text("utf-8")


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _markup(text: str) -> Markup:
    from markupsafe import Markup

    return Markup(text)


def load(path: str) -> dict[str, Any]:
    """A JSON report from a file. Raises :class:`UsageError` for one that is none."""
    from awp_lint.detector.reporting.json_report import SCHEMA

    try:
        found = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: the report cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: not JSON") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise UsageError(f"{path}: not an {SCHEMA} report; make one with --format json --output FILE")
    return found
