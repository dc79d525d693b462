"""Every rewrite that random real files get: is it Python, does it settle, does it touch nothing else, in any layout?

    python benchmarks/patches/layouts.py FOLDER… [--files 100] [--seed 6]

Files that work with tensors are drawn by the seed; each is a project of its own, and its findings count at whatever
confidence. Each fix alone must give Python in which everything outside its edits stands as before; so must it in the
same file with a mark in front and Windows line endings, with form feeds between definitions, and with tabs; there the
same rules must have the same fixes, and new lines the file's own ending. All fixes together, pass after pass, must come
to an end, after which there is nothing left to fix. The exit code is 1 where one of these fails.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from awp_lint.detector.finding import Finding
from awp_lint.detector.project.source import Source
from awp_lint.detector.semantics.model import view_of_source
from awp_lint.patches.plan import plan_file
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules

WORDS = (".item()", ".tolist()", ".nonzero(", ".cpu()", "torch.tensor(", "arange(", ".any()", ".all()", "softmax(")
_PASSES = 10


def sample(folders: Sequence[Path], count: int, seed: int) -> list[Path]:
    """Files of middling size that work with tensors."""
    found = [
        path
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        if 3_000 < path.stat().st_size < 60_000
        and sum(path.read_text(encoding="utf-8", errors="replace").count(word) for word in WORDS) >= 6
    ]
    return random.Random(seed).sample(found, min(count, len(found)))


def fixes(text: str) -> list[Finding]:
    """The findings with a diff, those of a file that is a project of its own."""
    run = run_rules(view_of_source(text, path="m.py"), all_rules())
    if run.problems:
        raise AssertionError(f"problems: {run.problems}")
    return [finding for finding in run.findings if finding.fix is not None and finding.fix.edits]


def alone(source: Source, found: Sequence[Finding]) -> list[str]:
    """The text after each fix alone. Raises :class:`AssertionError` where one moves what it does not edit."""
    results = []
    for finding in found:
        after = plan_file(source, [finding]).after  # refuses what is not Python, and edits that overlap
        if after == source.text:
            raise AssertionError(f"{finding.rule}: its fix changes nothing")
        assert finding.fix is not None
        if not untouched(source.text, after, finding):
            raise AssertionError(f"{finding.rule} at line {finding.line} moves what it does not edit")
        results.append(after)
    return results


def untouched(before: str, after: str, finding: Finding) -> bool:
    """Whether what lies between a fix's edits stands in the new text as before, imports left out."""
    assert finding.fix is not None
    position, pattern = 0, ""
    anything = "(?:.*\n)*?" if finding.fix.imports else ""
    for edit in sorted(set(finding.fix.edits), key=lambda e: (e.start, e.end)):
        pattern += _literally(before[position : edit.start], anything) + re.escape(edit.replacement)
        position = edit.end
    return re.fullmatch(pattern + _literally(before[position:], anything), after) is not None


def _literally(text: str, anything: str) -> str:
    """A pattern for a text into which whole lines may have been put behind its first import at the earliest."""
    if not anything or "import" not in text:
        return re.escape(text)
    lines = text.splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if "import" in line)
    return re.escape("".join(lines[:at])) + "".join(anything + re.escape(line) for line in lines[at:])


def windows(text: str) -> Source:
    """The file with a byte order mark and Windows line endings."""
    return Source.decode("m.py", ("\ufeff" + text.replace("\n", "\r\n")).encode())


def fed(text: str) -> str:
    """The file with a form feed in front of every definition."""
    return text.replace("\nclass ", "\n\x0cclass ").replace("\ndef ", "\n\x0cdef ")


def tabbed(text: str) -> str | None:
    """The file indented by tabs; None where its continuation lines do not stand them."""
    made = "".join(
        "\t" * ((len(line) - len(line.lstrip(" "))) // 4) + line.lstrip(" ") if "    " in line[:4] else line
        for line in text.splitlines(keepends=True)
    )
    try:
        ast.parse(made)
    except SyntaxError:
        return None
    return made


def wrong(text: str) -> tuple[list[str], Counter[str]]:
    """What is wrong with the fixes of one file, and how many each rule has."""
    found = fixes(text)
    rules = [finding.rule for finding in found]
    told: list[str] = []
    try:
        expected = alone(Source.decode("m.py", text.encode()), found)
        other = windows(text)
        again = fixes(other.text)
        if [finding.rule for finding in again] != rules:
            told.append("Windows line endings: other fixes")
        for after, wanted in zip(alone(other, again), expected, strict=False):
            if after.count("\n") != after.count("\r\n") or after.replace("\r\n", "\n") != wanted:
                told.append("Windows line endings are not kept")
            if not other.encode(after).startswith(b"\xef\xbb\xbf"):
                told.append("the byte order mark is lost")
        more = fixes(fed(text))
        if [finding.rule for finding in more] != rules:
            told.append("form feeds: other fixes")
        if any(after.count("\x0c") != fed(text).count("\x0c") for after in alone(_plain(fed(text)), more)):
            told.append("form feeds are lost")
        tabs = tabbed(text)
        if tabs is not None:
            alone(_plain(tabs), fixes(tabs))
    except (AssertionError, ValueError) as error:
        told.append(str(error))
    left = settled(text)
    if left:
        told.append(f"does not settle: {left}")
    return told, Counter(rules)


def _plain(text: str) -> Source:
    return Source.decode("m.py", text.encode())


def settled(text: str) -> list[tuple[str, int]]:
    """What is still to be fixed after all passes."""
    found: list[Finding] = []
    for _ in range(_PASSES):
        found = fixes(text)
        if not found:
            return []
        text = plan_file(_plain(text), found).after
    return [(finding.rule, finding.line) for finding in found]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--seed", type=int, default=6)
    options = parser.parse_args()
    rules: Counter[str] = Counter()
    failed = 0
    chosen = sample(options.folders, options.files, options.seed)
    with_fixes = 0
    for path in chosen:
        told, counted = wrong(path.read_text(encoding="utf-8"))
        rules += counted
        with_fixes += bool(counted)
        for line in told:
            failed += 1
            print(f"WRONG {'/'.join(path.parts[-3:])}: {line}", flush=True)
    print(f"{len(chosen)} files drawn by seed {options.seed}, {with_fixes} with fixes; {rules.total()} fixes of")
    print(
        f"{len(rules)} rules ({', '.join(f'{rule} {count}' for rule, count in sorted(rules.items()))}); {failed} wrong"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
