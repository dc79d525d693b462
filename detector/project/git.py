"""What is asked of git: merge bases, diffs, the content of commits. Nothing in the working tree is ever changed.

Only commands that run no code of a repository are used: no hooks, no external diffs or text converters, and contents
come as raw blobs, so that no filter that an attribute file names is started.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from awp_lint.detector.errors import UsageError

_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat", "LC_ALL": "C"}
_SAFE = ("-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_TIMEOUT = 600.0  # seconds; a fetch of a large repository takes minutes


class GitError(UsageError):
    """git cannot answer; the message is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a commit. ``path`` is as the commit spells it, in bytes decoded with surrogate escapes."""

    path: str
    blob: str
    size: int


class Repository:
    """The repository around a folder. Raises :class:`GitError` where there is none."""

    def __init__(self, folder: str) -> None:
        self.root = folder
        self._environment = {**os.environ, **_QUIET}
        top = self._answer("rev-parse", "--show-toplevel")
        if top is None:
            raise GitError(f"{folder}: {self._why_none()}")
        self.root = top
        self._environment |= self._without_filters()

    def _without_filters(self) -> dict[str, str]:
        """Settings that take the programs away which an attribute file and the repository's settings would start.

        A diff to the working tree starts them otherwise. They go by the environment, where any name can be written.
        """
        names = self._process(
            "config", "--null", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process|required)$"
        )
        number = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
        made: dict[str, str] = {}
        for name in sorted({_text(name) for name in names.stdout.split(b"\0") if name}):
            made[f"GIT_CONFIG_KEY_{number}"] = name
            made[f"GIT_CONFIG_VALUE_{number}"] = "false" if name.endswith(".required") else ""
            number += 1
        return {**made, "GIT_CONFIG_COUNT": str(number)} if made else {}

    def commit(self, name: str) -> str | None:
        """The full hash of the commit that a name stands for, or None."""
        return self._answer("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")

    def merge_base(self, one: str, other: str = "HEAD") -> str:
        """The best common ancestor. Raises :class:`GitError` with what to do where none is known."""
        for name in (one, other):
            if self.commit(name) is None:
                raise GitError(f"git knows no commit {name!r}{self._if_shallow()}")
        found = self._answer("merge-base", one, other)
        if found is None:
            raise GitError(f"{one} and {other} have no common ancestor{self._if_shallow()}")
        return found

    def default_base(self) -> str:
        """What a change is measured against when nobody says: the branch that CI names, else the remote's main branch.

        Raises :class:`GitError` where none of them exists.
        """
        named = [os.environ.get(n, "") for n in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")]
        names = [f"origin/{name}" for name in (*named, "HEAD", "main", "master") if name]
        for name in (*names, *named, "main", "master"):
            if name and self.commit(name) is not None:
                return name
        raise GitError(f"no branch to compare with: give --changed-from=REF{self._if_shallow()}")

    def diff(self, base: str, head: str | None = None, context: int = 0) -> str:
        """The unified diff from a commit to another, or to the working tree."""
        words = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", f"--unified={context}"]
        words += ["--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=all", base]
        return _text(self._run(*words, *([head] if head else []), "--"))

    def untracked(self) -> list[str]:
        """Files that git would add, relative to the root."""
        out = self._run("ls-files", "--others", "--exclude-standard", "-z", "--full-name", ":/")
        return [_text(name) for name in out.split(b"\0") if name]

    def fetch(self, *refs: str, remote: str = "origin") -> bool:
        """Get commits from the remote into the object store, without moving any branch. False where it refuses."""
        words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", remote, *refs)
        return self._process(*words).returncode == 0

    def deepen(self) -> bool:
        """Complete the history of a shallow clone."""
        if self._answer("rev-parse", "--is-shallow-repository") != "true":
            return False
        return self._process("fetch", "--quiet", "--no-tags", "--unshallow", "origin").returncode == 0

    def entries(self, commit: str) -> Iterator[Entry]:
        """The regular files of a commit; links and submodules are left out."""
        for row in self._run("ls-tree", "-r", "-z", "-l", "--full-tree", commit).split(b"\0"):
            about, _, name = row.partition(b"\t")
            words = about.split()
            if len(words) == 4 and words[1] == b"blob" and words[0] in (b"100644", b"100755") and words[3].isdigit():
                yield Entry(_text(name), words[2].decode(), int(words[3]))

    def extract(self, commit: str, folder: Path, wanted: Callable[[Entry], bool]) -> int:
        """Write the wanted files of a commit below an empty folder, as raw content; the number of files.

        A path that would leave the folder, or meets another on this file system, is left out.
        """
        entries = [e for e in self.entries(commit) if wanted(e) and _harmless(e.path)]
        written = 0
        for entry, data in zip(entries, self._blobs([e.blob for e in entries]), strict=True):
            target = folder / entry.path
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                with open(target, "xb", opener=_new_file) as stream:
                    stream.write(data)
            except OSError:
                continue
            written += 1
        return written

    def content(self, commit: str, path: str) -> bytes | None:
        """A file's raw content in a commit, or None."""
        process = self._process("cat-file", "blob", f"{commit}:{path}")
        return process.stdout if process.returncode == 0 else None

    def _blobs(self, names: Sequence[str]) -> Iterator[bytes]:
        if not names:
            return
        command = ["git", *_SAFE, "cat-file", "--batch"]
        with subprocess.Popen(
            command, cwd=self.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            for name in names:
                # One question, one answer: neither pipe can fill up.
                process.stdin.write(name.encode() + b"\n")
                process.stdin.flush()
                header = process.stdout.readline().split()
                if len(header) != 3:
                    raise GitError(f"git has no content of {name}: the clone is incomplete")
                yield process.stdout.read(int(header[2]))
                process.stdout.read(1)
            process.stdin.close()

    def _process(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                ["git", *_SAFE, *words],
                cwd=self.root,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env=self._environment,
                timeout=_TIMEOUT,
                check=False,
            )
        except FileNotFoundError:
            raise GitError("git is not installed, or the folder does not exist") from None
        except NotADirectoryError:
            raise GitError(f"{self.root}: not a folder") from None
        except subprocess.TimeoutExpired:
            raise GitError(f"git {words[0]} took longer than {_TIMEOUT:.0f} s") from None

    def _run(self, *words: str) -> bytes:
        process = self._process(*words)
        if process.returncode != 0:
            said = _text(process.stderr).strip().split("\n")[0]
            raise GitError(f"git {words[0]} failed: {said or process.returncode}")
        return process.stdout

    def _answer(self, *words: str) -> str | None:
        process = self._process(*words)
        text = _text(process.stdout).rstrip("\n")
        return text if process.returncode == 0 and text else None

    def _why_none(self) -> str:
        said = _text(self._process("rev-parse", "--show-toplevel").stderr)
        if "dubious ownership" in said:
            return "git does not trust this folder's owner: git config --global --add safe.directory …"
        return "not inside a git repository with a working tree"

    def _if_shallow(self) -> str:
        if self._answer("rev-parse", "--is-shallow-repository") == "true":
            return ": the clone is shallow; fetch the history (git fetch --unshallow, or fetch-depth: 0 in CI)"
        return ""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _new_file(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), stat.S_IRUSR | stat.S_IWUSR)


def _harmless(path: str) -> bool:
    parts = path.replace("\\", "/").split("/")
    return all(part not in ("", ".", "..") and part.lower() != ".git" and ":" not in part for part in parts)
