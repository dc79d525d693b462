"""Precision and recall of each rule on its corpus.

    python benchmarks/precision/corpus.py [AWP101 ...]

``corpus/rules/AWPnnn/`` holds ``bad_*.py`` and ``good_*.py``. A line that ends in ``# expect: AWPnnn`` must have a
finding of that rule at the default level and nothing else may; ``# expect[low]: AWPnnn`` lines have one at low
confidence only. ``fixed_X.py`` is what ``bad_X.py`` must become by the rule's own rewrites. The corpus is a regression
test: its figures say that rules do what their authors meant, not how good they are on other people's code.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from awp_lint.detector.finding import Confidence, Finding
from awp_lint.rules.engine import RuleRun, run_rules
from awp_lint.rules.registry import all_rules

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "corpus" / "rules"
_EXPECT = re.compile(r"[ \t]*# expect(\[low\])?: *((?:AWP\d{3}[, ]*)+)$", re.MULTILINE)


@dataclass
class Case:
    """One corpus file: what its comments ask for and what its folder's rule said, as (line, rule) pairs."""

    path: Path
    rule: str
    expected: set[tuple[int, str]] = field(default_factory=set)
    expected_low: set[tuple[int, str]] = field(default_factory=set)
    found: set[tuple[int, str]] = field(default_factory=set)
    found_low: set[tuple[int, str]] = field(default_factory=set)
    run: RuleRun = field(default_factory=RuleRun)

    @property
    def wrong(self) -> list[str]:
        """What differs, a line each."""
        return [
            *(f"{self.path.name}:{line}: no {rule}" for line, rule in sorted(self.expected - self.found)),
            *(f"{self.path.name}:{line}: false {rule}" for line, rule in sorted(self.found - self.expected)),
            *(f"{self.path.name}:{line}: no low {rule}" for line, rule in sorted(self.expected_low - self.found_low)),
            *(f"{self.path.name}: {problem.message}" for problem in self.run.problems),
        ]


def paths(rule: str | None = None) -> list[Path]:
    """The corpus files that are run, of one rule or of all."""
    return sorted(p for p in CORPUS.glob(f"{rule or 'AWP*'}/*.py") if p.name.startswith(("bad_", "good_")))


def check(path: Path) -> Case:
    """Run all rules on one corpus file."""
    text = path.read_text(encoding="utf-8")
    case = Case(path, path.parent.name)
    for number, line in enumerate(text.split("\n"), 1):
        found = _EXPECT.search(line)
        if found:
            target = case.expected_low if found.group(1) else case.expected
            target |= {(number, rule) for rule in re.findall(r"AWP\d{3}", found.group(2)) if rule == case.rule}
    case.run = run(text, path.relative_to(ROOT).as_posix())
    for finding in case.run.findings:
        if finding.rule == case.rule:
            shown = finding.confidence.order >= Confidence.MEDIUM.order
            (case.found if shown else case.found_low).add((finding.line, finding.rule))
    return case


def run(text: str, path: str) -> RuleRun:
    """The findings of all rules on one source text, as a project of its own."""
    from awp_lint.detector.semantics.model import view_of_source

    # The folder's name must not make it a test or a benchmark.
    return run_rules(view_of_source(text, path=Path(path).name), all_rules())


def plain(text: str) -> str:
    """The text without its expectations."""
    return _EXPECT.sub("", text)


def apply_fixes(text: str, findings: tuple[Finding, ...], rule: str) -> str:
    """The text with all rewrites of one rule."""
    from awp_lint.patches.splice import splice

    return splice(text, [edit for f in findings if f.rule == rule and f.fix is not None for edit in f.fix.edits])


def main(rules: list[str]) -> int:
    """Print the table and what differs; 1 where something does."""
    wrong: list[str] = []
    print(f"{'rule':8} {'files':>5} {'bad':>4} {'look-alikes':>11} {'found':>5} {'precision':>9} {'recall':>6}")
    for rule in all_rules():
        if rules and rule.id not in rules:
            continue
        cases = [check(path) for path in paths(rule.id)]
        expected = sum(len(case.expected) for case in cases)
        found = sum(len(case.found) for case in cases)
        hits = sum(len(case.found & case.expected) for case in cases)
        bad = sum(case.path.name.startswith("bad_") for case in cases)
        precision = f"{hits / found:9.2f}" if found else "        -"
        recall = f"{hits / expected:6.2f}" if expected else "     -"
        print(f"{rule.id:8} {len(cases):5} {bad:4} {len(cases) - bad:11} {found:5} {precision} {recall}")
        wrong += [f"{rule.id} {line}" for case in cases for line in case.wrong]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
