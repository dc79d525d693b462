"""The share of default-level findings that come with a diff, by rule, over given paths.

    python benchmarks/patches/coverage.py PATH… [--list AWP101]

A diff counts when its fix is safe or unsafe and its rewrite, spliced into the file, is valid Python. ``--list`` prints
the findings of one rule that have none. Paths are scanned together, as one project; the last line but one leaves the
most frequent rule out.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Finding, Safety
from awp_lint.detector.project.source import Source
from awp_lint.detector.scan import scan
from awp_lint.patches.plan import with_diff
from awp_lint.patches.steploop.build import with_step_patches
from awp_lint.rules.registry import all_rules


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--list", metavar="ID", help="print the findings of this rule (or ALL) that have no diff")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="worker processes (default: one a core)")
    options = parser.parse_args()
    settings = Settings(jobs=options.jobs)
    result = scan(options.paths, settings)
    problems = list(result.problems)
    findings = [f for f in result.findings if f.confidence.order >= settings.confidence.order and f.suppressed is None]
    findings = with_step_patches(findings, options.paths, settings, problems)
    sources: dict[str, Source] = {}
    found: Counter[str] = Counter()
    safe: Counter[str] = Counter()
    unsafe: Counter[str] = Counter()
    names = {f.rule: f.name for f in findings}
    for finding in findings:
        found[finding.rule] += 1
        if not _has_diff(finding, sources):
            if options.list in (finding.rule, "ALL"):
                print(f"{finding.path}:{finding.line}: {finding.rule} {finding.message}")
            continue
        assert finding.fix is not None
        (safe if finding.fix.safety is Safety.SAFE else unsafe)[finding.rule] += 1
    print(f"{'rule':<28}{'findings':>9}{'safe':>7}{'unsafe':>8}{'with a diff':>13}")
    for rule, count in sorted(found.items()):
        patched = safe[rule] + unsafe[rule]
        print(f"{rule + ' ' + names[rule]:<28}{count:>9}{safe[rule]:>7}{unsafe[rule]:>8}{patched / count:>12.0%}")
    total, patched = found.total(), safe.total() + unsafe.total()
    share = patched / total if total else 0.0
    print(f"{'all':<28}{total:>9}{safe.total():>7}{unsafe.total():>8}{share:>12.1%}")
    most, count = found.most_common(1)[0] if found else ("", 0)
    if 0 < count < total:
        rest = patched - safe[most] - unsafe[most]
        print(f"{'all but ' + most:<28}{total - count:>9}{'':>15}{rest / (total - count):>12.1%}")
    print(f"{result.files} files, {result.lines} lines, {len(problems)} problems")
    few = {rule.id: rule.manual for rule in all_rules() if rule.rewrites() and found[rule.id] >= 10}
    few = {name: manual for name, manual in few.items() if safe[name] + unsafe[name] < found[name] / 10}
    for manual, words in ((True, "marked manual"), (False, "not marked")):
        ids = " ".join(name for name in few if few[name] is manual)
        print(f"rules of ten findings or more with a rewrite for under a tenth, {words}: {ids or 'none'}")
    return 0


def _has_diff(finding: Finding, sources: dict[str, Source]) -> bool:
    if finding.fix is None or not finding.fix.edits:
        return False
    if finding.path not in sources:
        sources[finding.path] = Source.decode(finding.path, Path(finding.path).read_bytes())
    try:
        patched = with_diff(finding, sources[finding.path])
    except ValueError as error:
        print(f"{finding.path}:{finding.line}: {finding.rule} cannot be patched: {error}", file=sys.stderr)
        return False
    return patched.fix is not None and bool(patched.fix.diff)


if __name__ == "__main__":
    sys.exit(main())
