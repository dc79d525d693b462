"""The advice of a run as data: options that apply first, then what is not known, then what does not apply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from awp_lint.detector.layers.grid import guesses
from awp_lint.detector.layers.matrix import OPTIONS, Fit, Option
from awp_lint.detector.layers.signals import Signals, signals
from awp_lint.detector.profiling.peaks import peaks_of

_ORDER = {"yes": 0, "unknown": 1, "no": 2}
_UNMEASURED = "nothing was measured on a device"
NOTE = (
    "Options beyond single lines, in order of priority. «Expected» is what others report, not what this program will "
    "gain; «at most» is bounded by this run. All of it is a guess until it is measured."
)


def advise(profile: Mapping[str, Any] | None, findings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """``{"note", "options": […], "combinations": […]}``; findings as in the JSON report."""
    known = signals(profile, findings) if profile is not None else None
    shown = [f for f in findings if f["suppressed"] is None]
    rules = known.rules if known else frozenset(f["rule"] for f in shown)
    rows = [_row(option, _fit(option, known, rules)) for option in OPTIONS]
    rows.sort(key=lambda row: (_ORDER[row["applies"]], row["priority"], row["effort"]))
    return {"note": NOTE, "options": rows, "combinations": _combinations(profile, known)}


def _fit(option: Option, known: Signals | None, rules: frozenset[str]) -> Fit:
    seen = sorted(rules & set(option.rules))
    fit = option.fit(known) if known else Fit("unknown", _UNMEASURED)
    if not seen or fit.applies == "no":
        return fit
    grounds = f"{', '.join(seen)} found in the code"
    return Fit("yes", f"{grounds}; {fit.why}" if known else grounds, fit.bound)


def _row(option: Option, fit: Fit) -> dict[str, Any]:
    return {
        "layer": option.layer, "option": option.title, "priority": option.priority, "effort": option.effort,
        "applies": fit.applies, "why": fit.why, "expected": option.prior, "bound": fit.bound,
        "measure": option.measure if fit.applies != "no" else "",
    }  # fmt: skip


def _combinations(profile: Mapping[str, Any] | None, known: Signals | None) -> list[dict[str, Any]]:
    if profile is None or known is None:
        return []
    devices = (profile.get("telemetry") or {}).get("devices") or []
    name = ((profile.get("picture") or {}).get("device") or {}).get("name") or (devices[0]["name"] if devices else "")
    peaks = peaks_of(name)
    return [
        {"batch": g.batch, "weights": g.weights, "runtime": g.runtime, "devices": g.devices,
         "step_ms": float(f"{g.step_ms:.3g}"), "throughput": float(f"{g.throughput:.2g}")}
        for g in guesses(known, peaks.ridge if peaks else None)
    ]  # fmt: skip


def lines(advice: Mapping[str, Any], unit: str, every: bool = False) -> Iterator[str]:
    """The advice for a terminal; what does not apply only with ``every``."""
    import textwrap

    yield from textwrap.wrap(advice["note"], 110)
    for applies, title in (("yes", "Applies here"), ("unknown", "Not known"), ("no", "Does not apply")):
        rows = [row for row in advice["options"] if row["applies"] == applies and (applies != "no" or every)]
        if rows:
            yield ""
            yield f"{title}:"
        same = [row for row in rows if row["why"] == _UNMEASURED]
        for row in rows:
            if row in same:
                continue
            bound = f"; {row['bound']}" if row["bound"] else ""
            yield f"  P{row['priority']} {row['layer']}: {row['option']} (effort {row['effort']} of 4)"
            if applies != "no":
                yield f"      expected (others report): {row['expected']}{bound}"
            yield from textwrap.wrap(
                f"because {row['why']}", 104, initial_indent="      ", subsequent_indent="        "
            )
            if row["measure"]:
                yield f"      measure: {row['measure']}"
        if same:
            listed = "; ".join(row["option"] for row in same)
            yield from textwrap.wrap(f"{_UNMEASURED}: {listed}", 108, initial_indent="  ", subsequent_indent="    ")
    if advice["combinations"]:
        yield ""
        yield "Combinations (guesses by a roofline model of this run's kernels, none measured; throughput a device):"
        for row in advice["combinations"]:
            devices = f"{row['devices']} device{'s' if row['devices'] > 1 else ''}"
            yield (
                f"  batch ×{row['batch']:<3} weights {row['weights']:<12} runtime {row['runtime']:<9} {devices:<10}"
                f" {row['step_ms']:>7.3g} ms a {unit}, throughput ×{row['throughput']:g}"
            )
