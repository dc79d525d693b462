"""The corpus's apps with all fixes written to a copy: do they still run, and print the same?

    python benchmarks/patches/apps.py [APP…] [--fix-only AWP1,AWP6]

Each app is copied, patched with `--fix --unsafe-fixes`, and run on the CPU as it was and as it is, with few requests.
What an app prints on standard output (answers, transcripts, checksums of pictures) does not depend on time, so it is
compared as it is. Fixes that change the last bits of numbers (AWP501) may round a colour to its neighbour, which
changes a checksum: pictures are compared value by value, and may be one of 256 levels apart. The exit code is 1 where
an app does not run, prints something else, or paints something else than that.
"""

from __future__ import annotations

import argparse
import difflib
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

APPS = Path(__file__).resolve().parents[2] / "corpus" / "apps"
ARGUMENTS = {
    "adapters": ["--requests", "6", "--max-tokens", "10"],
    "chat": ["--requests", "4", "--max-tokens", "24"],
    "clicks": ["--requests", "12"],
    "detect": ["--requests", "1"],
    "embeddings": ["--requests", "4"],
    "experts": ["--requests", "2", "--max-tokens", "16"],
    "images": ["--requests", "2"],
    "painter": ["--requests", "2"],
    "rerank": ["--requests", "2"],
    "speculate": ["--requests", "2"],
    "summaries": ["--requests", "2", "--max-tokens", "8"],
    "transcribe": ["--requests", "3"],
    "vision": ["--requests", "2"],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("apps", nargs="*", default=sorted(ARGUMENTS))
    parser.add_argument("--fix-only", metavar="IDS")
    options = parser.parse_args()
    failed = 0
    for name in options.apps:
        with tempfile.TemporaryDirectory(prefix="apps-") as folder:
            copy = Path(folder) / name
            shutil.copytree(APPS / name, copy, ignore=shutil.ignore_patterns("__pycache__"))
            only = ["--fix-only", options.fix_only] if options.fix_only else []
            words = ["--fix", "--unsafe-fixes", "--no-cache", *only]
            fixed = subprocess.run(
                [sys.executable, "-m", "awp_lint", ".", *words], cwd=copy, capture_output=True, text=True
            )
            painted = {which: Path(folder) / which for which in ("before", "after")} if name == "images" else {}
            before, after = run(APPS / name, name, painted.get("before")), run(copy, name, painted.get("after"))
            distances = apart(painted["before"], painted["after"]) if painted and before and after else Counter()
        said = next((line for line in fixed.stderr.splitlines() if " fixed, " in line), fixed.stderr.strip()[-200:])
        if before is None or after is None:
            failed += 1
            print(f"{name}: {said}; does not run {'any more' if before is not None else 'as it is'}")
            continue
        changed = [row for row in difflib.ndiff(before, after) if row[:1] in "+-"]
        print(f"{name}: {said}; {len(before)} lines printed, {len(changed) // 2} of them differ")
        for row in changed:
            print(f"    {row}")
        if distances:
            told = ", ".join(f"{count} by {levels}" for levels, count in sorted(distances.items()) if levels)
            print(f"    {distances.total()} values painted, of 256 levels each; apart: {told or 'none'}")
        near = bool(distances) and max(distances) <= 1
        failed += any("checksum" not in row or not near for row in changed)
    return 1 if failed else 0


def apart(one: Path, other: Path) -> Counter[int]:
    """How many bytes of pictures are how far apart."""
    found: Counter[int] = Counter()
    for path in sorted(one.iterdir()):
        pairs = zip(path.read_bytes(), (other / path.name).read_bytes(), strict=True)
        found.update(abs(a - b) for a, b in pairs)
    return found


def run(folder: Path, name: str, out: Path | None = None) -> list[str] | None:
    """What the app prints; None where it fails. Pictures go to ``out``."""
    words = [*ARGUMENTS.get(name, []), *(["--out", str(out)] if out else [])]
    done = subprocess.run([sys.executable, "main.py", *words], cwd=folder, capture_output=True, text=True, timeout=600)
    return done.stdout.splitlines() if done.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
