"""All fixes written to a copy of a package: does what comes out compile, import, settle, and go back?

    python benchmarks/patches/apply.py site-packages/transformers models/llama models/t5 generation
    python benchmarks/patches/apply.py src/mypackage

The package is copied to a scratch folder, which becomes a git repository. On the named parts of the copy (all of it by
default): `--diff --unsafe-fixes` is taken by `git apply` and taken back by `git apply -R`, byte for byte; `--fix
--unsafe-fixes` is written; every changed file compiles; every changed module imports where it did before; a second
`--fix` changes nothing; no line that was added mentions this tool. Modules import in processes of their own, so that
what one of them does cannot help another. The exit code is 1 where one of these fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

IMPORT = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        print("ok", name)
    except BaseException as error:
        print("failed", name, type(error).__name__, str(error).split(chr(10))[0][:120])
"""
_AT_ONCE = 8  # modules an importing process


class Copy:
    """The copied package and what is done to it."""

    def __init__(self, package: Path, folder: Path) -> None:
        self.folder = folder
        self.root = folder / package.name
        shutil.copytree(package, self.root, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", "*.so", "*.bin"))
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "before")

    def git(self, *words: str, data: bytes | None = None) -> bytes:
        return subprocess.run(["git", *words], cwd=self.folder, input=data, check=True, stdout=subprocess.PIPE).stdout

    def lint(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        env = {**os.environ, "XDG_CACHE_HOME": str(self.folder.parent / "cache")}
        return subprocess.run([sys.executable, "-m", "awp_lint", *words], cwd=self.folder, env=env, capture_output=True)

    def changed(self) -> list[str]:
        return self.git("diff", "--name-only").decode().splitlines()

    def importable(self, files: Sequence[str]) -> dict[str, str]:
        """What happens when each file's module is imported: "" or the error."""
        modules = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.folder), os.environ.get("PYTHONPATH", "")])}
        found: dict[str, str] = {}
        for start in range(0, len(modules), _AT_ONCE):
            some = modules[start : start + _AT_ONCE]
            ran = subprocess.run([sys.executable, "-c", IMPORT, *some], env=env, capture_output=True, text=True)
            for row in ran.stdout.splitlines():
                word, _, rest = row.partition(" ")
                if word in ("ok", "failed"):
                    name, _, error = rest.partition(" ")
                    found[name] = error
            for name in some:
                found.setdefault(name, "the process died")
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("parts", nargs="*", help="folders or files of the package")
    parser.add_argument("--keep", type=Path, help="where the copy is made and left")
    options = parser.parse_args()
    scratch = options.keep or Path(tempfile.mkdtemp(prefix="apply-"))
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        return check(Copy(options.package.resolve(), scratch / "copy"), options.parts)
    finally:
        if options.keep is None:
            shutil.rmtree(scratch)


def check(copy: Copy, parts: Sequence[str]) -> int:
    wrong: list[str] = []
    paths = [f"{copy.root.name}/{part}".rstrip("/") for part in parts] or [copy.root.name]
    made = copy.lint(*paths, "--diff", "--unsafe-fixes")
    print(f"{made.stdout.count(b'+++ b/')} files and {made.stdout.count(b'@@ AWP')} hunks in the diff")
    if made.returncode > 1:
        wrong.append(f"--diff: {made.stderr.decode()[-300:]}")
    if made.stdout:
        copy.git("apply", "--whitespace=nowarn", "-", data=made.stdout)
        applied = len(copy.changed())
        copy.git("apply", "-R", "--whitespace=nowarn", "-", data=made.stdout)
        left = len(copy.changed())
        print(f"git apply changed {applied} files, git apply -R left {left} changed")
        if left:
            wrong.append("git apply -R does not bring the files back")

    ran = copy.lint(*paths, "--fix", "--unsafe-fixes")
    print(f"--fix --unsafe-fixes: {ran.stderr.decode().strip().splitlines()[0] if ran.stderr else 'nothing said'}")
    if ran.returncode > 1:
        wrong.append(f"--fix: {ran.stderr.decode()[-300:]}")
    changed = copy.changed()
    for name in changed:
        try:
            compile((copy.folder / name).read_bytes(), name, "exec")
        except SyntaxError as error:
            wrong.append(f"{name}:{error.lineno}: does not compile: {error.msg}")
    print(f"{len(changed)} changed files compile" if not wrong else f"{len(changed)} changed files")

    after = copy.importable(changed)
    bad = sorted(name for name, error in after.items() if error)
    copy.git("stash", "-q")
    before = copy.importable([name.replace(".", "/") + ".py" for name in bad])
    copy.git("stash", "pop", "-q")
    for name in bad:
        if not before.get(name):
            wrong.append(f"{name}: imported before, now {after[name]}")
    lost = sum("imported before" in line for line in wrong)
    print(f"{len(after) - len(bad)} changed modules import; {len(bad)} do not, {len(bad) - lost} did not before either")

    first = copy.git("diff")
    copy.lint(*paths, "--fix", "--unsafe-fixes")
    if copy.git("diff") != first:
        wrong.append("a second --fix changes something")
    else:
        print("a second --fix changes nothing")
    ours = [line for line in first.splitlines() if line.startswith(b"+") and b"awp_lint" in line]
    print(f"{len(ours)} added lines mention this tool")
    wrong += [line.decode() for line in ours]
    for line in wrong:
        print(f"WRONG {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
