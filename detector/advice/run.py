"""The advice of a run: the jury before findings are ranked, patches after. Whatever goes wrong here, findings stay."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Sequence

from awp_lint.detector.advice import triage
from awp_lint.detector.advice.asking import Asker, shown
from awp_lint.detector.advice.examples import Example, Examples
from awp_lint.detector.advice.settings import LlmSettings
from awp_lint.detector.advice.subject import Subjects
from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Finding
from awp_lint.detector.project.source import Source
from awp_lint.patches.llm import writer
from awp_lint.patches.llm.assemble import sent_code

Report = Callable[[str], None]


class Adviser:
    """One run's advice. ``report`` gets progress, a line at a time; ``notes`` are for the report's end."""

    def __init__(
        self,
        llm: LlmSettings,
        paths: Sequence[str],
        settings: Settings,
        read: Callable[[str], Source],
        report: Report = lambda text: None,
    ) -> None:
        self._llm = llm
        self._paths = list(paths)
        self._settings = settings
        self._report = report
        self._subjects = Subjects(self._paths, settings, read)
        self._asker = Asker(llm, report)
        self._examples = Examples(os.getcwd(), llm.cache)
        self._attempts: dict[str, Example] = {}
        self._notes: list[str] = []

    def questions(self, ranked: Sequence[Finding]) -> str:
        """What would be sent for these findings, for ``--llm-dry-run``; a repair round depends on the answers."""
        found, _ = triage.cases(ranked, self._subjects, self._llm, self._asker)
        asked = [question for case in found for question in case.questions]
        wanted = writer.subjects_to_write(ranked, self._subjects, self._llm.patches)
        asked += [writer.question(s, self._llm, self._examples.of(s.finding.rule, sent_code(s))) for s in wanted]
        return shown(asked, self._llm.base_url)

    def judge(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings with what a jury says of the unsure ones; none is left out that may not be."""
        try:
            return self._judge(findings)
        except Exception as error:  # as for rules: a fault of ours must not cost the user the findings
            self._notes.append(f"language model: the jury failed: {type(error).__name__}: {error}")
            return list(findings)

    def _judge(self, findings: Sequence[Finding]) -> list[Finding]:
        found, left = triage.cases(findings, self._subjects, self._llm, self._asker)
        for reason, count in sorted(left.items()):
            self._notes.append(f"language model: {count} findings not judged: {reason}")
        if found:
            self._report(f"{len(found)} findings before a jury; their functions go to {self._llm.base_url}")
        rulings = triage.judge(found, self._asker)
        judged = triage.judged(findings, rulings)
        least = self._settings.confidence.order
        kept = [f for f in judged if f.confidence.order >= least]
        if rulings:
            ruled = Counter(ruling.opinion.value.replace("_", " ") for ruling in rulings.values())
            counts = ", ".join(f"{count} {name}" for name, count in sorted(ruled.items()))
            hidden = len(judged) - len(kept)
            more = f"; {hidden} now below the level shown (--confidence low shows them)" if hidden else ""
            self._notes.append(f"language model: a jury on {len(rulings)} findings: {counts}{more}")
        return kept

    def write(self, ranked: Sequence[Finding]) -> list[Finding]:
        """The findings, some with a patch of a model's that passed the gates."""
        try:
            wanted = writer.subjects_to_write(ranked, self._subjects, self._llm.patches)
            if not wanted:
                return list(ranked)
            self._report(f"{len(wanted)} patches are asked for; the functions go to {self._llm.base_url}")
            done = writer.write(ranked, wanted, self._asker, self._settings, self._paths, self._examples, self._report)
        except Exception as error:  # as above
            self._notes.append(f"language model: the patch writer failed: {type(error).__name__}: {error}")
            return list(ranked)
        self._attempts = done.attempts
        if done.attempts:
            self._notes.append(done.note())
        return done.findings

    def proven(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings after a proof: a model's patch that fails it is withdrawn; examples for later are kept."""
        ours = [f for f in findings if f.verification is not None and f.fix is not None and f.fix.author]
        self._examples.keep(
            dataclasses.replace(self._attempts[f.id], verdict=f.verification.verdict.value)
            for f in ours
            if f.verification is not None and f.id in self._attempts
        )
        return [writer.after_proof(f) for f in findings]

    def notes(self) -> tuple[str, ...]:
        """What was done, what it cost, what failed."""
        self._asker.close()
        asked = self._asker.answered or self._asker.cached or self._asker.failures or self._asker.broken
        return (*self._notes, *([self._asker.summary()] if asked else ["language model: nothing to ask"]))
