"""The corpus's apps with all fixes written to a copy: do they still run, and print the same?

    python benchmarks/patches/apps.py [APP…] [--fix-only AWP1,AWP6]

Each app is copied, patched with `--fix --unsafe-fixes`, and run on the CPU as it was and as it is, with few requests.
What an app prints on standard output (answers, transcripts, checksums of pictures) does not depend on time, so it is
compared as it is. Fixes that change the last bits of numbers may change a checksum: `--fix-only` tells which.
"""

from __future__ import annotations

import argparse
import difflib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

APPS = Path(__file__).resolve().parents[2] / "corpus" / "apps"
ARGUMENTS = {
    "chat": ["--requests", "4", "--max-tokens", "24"],
    "embeddings": ["--requests", "4"],
    "experts": ["--requests", "2", "--max-tokens", "16"],
    "images": ["--requests", "2"],
    "transcribe": ["--requests", "3"],
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
            before, after = run(APPS / name, name), run(copy, name)
        said = next((line for line in fixed.stderr.splitlines() if " fixed, " in line), fixed.stderr.strip()[-200:])
        if before is None or after is None:
            failed += 1
            print(f"{name}: {said}; does not run {'any more' if before is not None else 'as it is'}")
            continue
        changed = [row for row in difflib.ndiff(before, after) if row[:1] in "+-"]
        print(f"{name}: {said}; {len(before)} lines printed, {len(changed) // 2} of them differ")
        for row in changed:
            print(f"    {row}")
    return 1 if failed else 0


def run(folder: Path, name: str) -> list[str] | None:
    """What the app prints; None where it fails."""
    done = subprocess.run(
        [sys.executable, "main.py", *ARGUMENTS.get(name, [])], cwd=folder, capture_output=True, text=True, timeout=600
    )
    return done.stdout.splitlines() if done.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
