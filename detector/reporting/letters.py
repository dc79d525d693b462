"""A patch series for people: one file a patch with its evidence above the diff, the order, and a cover letter.

The files are what ``git am``, ``git apply`` and ``quilt`` take. The cover letter says what was looked at, what each
patch is worth and on what grounds, what has to be checked before it is merged, and what was left out.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Finding, Safety
from awp_lint.detector.reporting.report import Report
from awp_lint.detector.reporting.terminal import plain
from awp_lint.detector.reporting.text import evidence_lines, profile_lines
from awp_lint.detector.wholefile import write_whole
from awp_lint.patches.plan import price
from awp_lint.patches.series import Series, SeriesPatch

_WIDTH = 72
_OURS = re.compile(r"\d{4}-AWP\d{3}-[\w-]+\.patch")


def write_series(folder: str, series: Series, report: Report) -> list[str]:
    """Write the patches, ``series`` and ``cover-letter.txt`` into a folder; returns the names of the patches.

    Patches of an earlier series there are removed. Raises :class:`UsageError` when the folder holds other files of
    those names' kind that are not ours, or cannot be written.
    """
    target = Path(folder)
    names = [_name(number, patch) for number, patch in enumerate(series.patches, 1)]
    total = len(names)
    files = {
        name: patch_text(number, total, patch)
        for number, (name, patch) in enumerate(zip(names, series.patches, strict=True), 1)
    }
    files["series"] = "".join(f"{name}\n" for name in names)
    files["cover-letter.txt"] = cover_letter(names, series, report)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for old in target.iterdir():
            if _OURS.fullmatch(old.name) and old.name not in files:
                old.unlink()
        for name, text in files.items():
            write_whole(target / name, text.encode())
    except OSError as error:
        raise UsageError(f"{folder}: the patches cannot be written: {error.strerror or error}") from None
    return names


def _name(number: int, patch: SeriesPatch) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", _title(patch.best).lower()).strip("-")[:48].strip("-")
    return f"{number:04}-{patch.best.rule}-{words or patch.best.name}.patch"


def _title(finding: Finding) -> str:
    return finding.fix.title if finding.fix else finding.name


def patch_text(number: int, total: int, patch: SeriesPatch) -> str:
    """One patch as ``git am`` takes it: subject, what was found and measured, what has to hold, the diff."""
    best = patch.best
    lines = [
        "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001",
        "From: awp-lint <awp-lint@localhost>",
        f"Subject: [PATCH {number}/{total}] {best.rule} {_title(best)}",
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=UTF-8",
        "Content-Transfer-Encoding: 8bit",
        "",
    ]
    for finding in patch.findings:
        lines += _wrapped(finding.message)
        lines.append(f"  {finding.path}:{finding.line}, in {finding.function}; runs {finding.frequency}")
        lines += [line for reason in finding.why for line in _wrapped(reason, "  because ")]
        lines.append("")
    lines += _measured(best)
    lines += _conditions(best)
    lines.append("---")
    return "\n".join(lines) + "\n" + patch.diff


def _measured(finding: Finding) -> Iterator[str]:
    if finding.evidence is None and finding.verification is None:
        yield "Not measured: found in the code alone."
    else:
        yield "Measured:"
        for line in plain(evidence_lines(finding)).splitlines():
            yield from _wrapped(line.strip(), "  ")
    yield ""


def _conditions(finding: Finding) -> Iterator[str]:
    fix = finding.fix
    if fix is None:
        return
    if fix.safety is Safety.SAFE:
        yield "Safe: same values bit for bit, same effects."
    else:
        effects = ", ".join(effect.value for effect in fix.effects) or "nothing known"
        yield f"Unsafe: may change {effects}."
    for condition in fix.requires:
        yield from _wrapped(condition, "  Right only if ")
    yield ""


def _wrapped(text: str, first: str = "") -> list[str]:
    later = " " * (len(first) - len(first.lstrip()) + 2 if first.strip() else len(first))
    found = textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )
    # A line of a message that begins like a diff would end it for the tools that read patches.
    return [f" {line}" if line.startswith(("---", "diff ", "Index:", "From ")) else line for line in found]


def cover_letter(names: list[str], series: Series, report: Report) -> str:
    """What a performance team would write above the series."""
    lines: list[str] = []
    paths = {finding.path for patch in series.patches for finding in patch.findings}
    lines.append(f"{len(names)} {_plural('patch', len(names))} for {len(paths)} {_plural('file', len(paths))}")
    lines += ["", f"Looked at: {report.files} files, {report.lines} lines, for {_target(report)}."]
    if report.profile is None:
        lines += _wrapped(
            "Nothing was run: the order is what the code promises, and no time is claimed. "
            "`awp-lint --profile CMD` prices each patch, `--verify` proves it."
        )
    else:
        lines += ["", "The run:"]
        lines += [f"  {line.rstrip()}" for line in plain(profile_lines(report.profile)).splitlines() if line.strip()]
    lines += ["", "The patches, best first:", ""]
    for name, patch in zip(names, series.patches, strict=True):
        best = patch.best
        lines.append(f"  {name}")
        lines.append(f"      {best.path}:{best.line} · {best.root_cause.value} · {best.frequency} · {_worth(best)}")
        lines.append(f"      {best.fix.safety.value if best.fix else ''}: {_title(best)}")
        for condition in best.fix.requires if best.fix else ():
            lines += _wrapped(condition, "      check: ")
    lines += _left_out(series, report)
    lines += [
        "",
        "To apply all of them, each as a commit:   git am *.patch",
        "To try one and take it back:              git apply FILE; git apply -R FILE",
        "",
    ]
    return "\n".join(lines)


def _worth(finding: Finding) -> str:
    if finding.verification is not None and finding.verification.saving_pct is not None:
        found = finding.verification
        interval = f" [{found.low_pct:.1f}, {found.high_pct:.1f}]" if found.low_pct is not None else ""
        return f"{found.verdict.value.replace('_', ' ')}: {found.saving_pct:.1f} %{interval}"
    return price(finding) or (finding.evidence.verdict.value.replace("_", " ") if finding.evidence else "not measured")


def _left_out(series: Series, report: Report) -> Iterator[str]:
    served = {finding.id for patch in series.patches for finding in patch.findings}
    waiting = {finding.id for finding in series.postponed}
    manual = [f for f in report.findings if f.id not in served | waiting]
    if waiting:
        yield ""
        yield f"Left for the next run, since they touch the same lines as a better patch: {len(waiting)}"
        for finding in series.postponed:
            yield f"  {finding.path}:{finding.line} {finding.rule} {_title(finding)}"
    if manual:
        yield ""
        yield f"Found, but without a patch here (a recommendation, or not asked for): {len(manual)}"
        for finding in manual[:20]:
            yield f"  {finding.path}:{finding.line} {finding.rule} {_title(finding)}"
        if len(manual) > 20:
            yield f"  and {len(manual) - 20} more"


def _target(report: Report) -> str:
    torch = "newest torch" if report.target.torch is None else "torch " + ".".join(map(str, report.target.torch))
    return f"{torch} on {report.target.device}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else word + ("es" if word.endswith("ch") else "s")
