"""Scans of a project of which some files are being edited.

The scan is the same as everywhere; a file that an editor holds is read from its buffer. One file that changes is looked
at again with the answers that the project gave before, so that the project's size matters little between keystrokes.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass

from awp_lint.detector import baseline
from awp_lint.detector.config import Settings, load_settings
from awp_lint.detector.finding import Evidence, Finding, Problem, Safety
from awp_lint.detector.project import reading
from awp_lint.detector.project.files import shown_path
from awp_lint.detector.project.source import Source
from awp_lint.detector.target import project_target
from awp_lint.patches.plan import plan_file


@dataclass(frozen=True, slots=True)
class Analysed:
    """What a scan says of one file, whose text was ``source``'s. ``broken`` is why it could not be parsed."""

    source: Source
    findings: tuple[Finding, ...] = ()
    broken: Problem | None = None


class Project:
    """A folder that an editor works in. Not for several threads at once."""

    def __init__(self, root: str) -> None:
        from pathlib import Path

        self.root = os.path.realpath(root)
        folder = Path(self.root)
        settings = load_settings(folder, None, False, project_target(folder), [])
        # In this process, where the buffers are, and with a cache, without which every key stroke would cost a scan.
        self.settings: Settings = dataclasses.replace(settings, jobs=1, cache=True)
        self.prices: Mapping[str, Evidence] = {}

    def analyse(self, buffers: Mapping[str, str]) -> dict[str, Analysed]:
        """Scan the project with some files' texts as an editor holds them, by real path; what it says of these."""
        from awp_lint.detector.scan import scan

        texts = {path: Source(path=shown_path(path, self.root), text=text) for path, text in buffers.items()}
        reading.held.clear()
        reading.held.update({path: text.encode("utf-8", "surrogatepass") for path, text in buffers.items()})
        try:
            named = [path for path in buffers if not path.startswith(self.root + os.sep)]
            result = scan([self.root, *named], self.settings, cwd=self.root)
        finally:
            reading.held.clear()
        lowest = self.settings.confidence.order
        shown = [f for f in result.findings if f.suppressed is None and f.confidence.order >= lowest]
        if self.settings.baseline is not None:
            shown = list(baseline.match(shown, baseline.read(self.settings.baseline)).new)
        by_path: dict[str, list[Finding]] = {}
        for finding in shown:
            priced = dataclasses.replace(finding, evidence=self.prices.get(finding.id))
            by_path.setdefault(finding.path, []).append(priced)
        broken = {p.path: p for p in reversed(result.problems)}
        return {
            path: Analysed(source, tuple(by_path.get(source.path, ())), broken.get(source.path))
            for path, source in texts.items()
        }


def fixed_text(analysed: Analysed, findings: list[Finding]) -> str:
    """The text with the fixes of some findings; those that touch another's lines wait. Raises :class:`ValueError`."""
    return plan_file(analysed.source, [f for f in findings if f.fix is not None and f.fix.edits]).after


def safe(analysed: Analysed) -> list[Finding]:
    """The findings with a safe rewrite."""
    return [f for f in analysed.findings if f.fix is not None and f.fix.edits and f.fix.safety is Safety.SAFE]
