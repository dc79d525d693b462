"""What a change adds: both sides taken from git as data, scanned, and matched.

No file of the change is imported, run or even checked out: contents come as raw blobs into a folder of our own, and
only the parser sees them. Settings, target versions, ignore rules and the baseline are those of the merge base, so
that a change cannot switch its own check off.
"""

from __future__ import annotations

import dataclasses
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from awp_lint.detector import baseline
from awp_lint.detector.baseline import known_of
from awp_lint.detector.bot.host import BotError, Change
from awp_lint.detector.changes import ChangedFile, parse_diff
from awp_lint.detector.config import Settings, load_settings
from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Evidence, Finding, Problem
from awp_lint.detector.project.git import Entry, GitError, Repository
from awp_lint.detector.project.reading import MAX_BYTES
from awp_lint.detector.project.source import Source
from awp_lint.detector.scan import ScanResult, scan
from awp_lint.detector.target import project_target

_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
DEFAULT_BASELINE = ".awp-lint-baseline.json"


@dataclass(frozen=True)
class Comparison:
    """``new`` findings in rank order, ``silenced`` ones by comments that the change adds. ``read`` gives a
    source by its path."""

    merge_base: str
    new: tuple[Finding, ...]
    silenced: tuple[Finding, ...]
    changed: dict[str, ChangedFile]
    problems: tuple[Problem, ...]
    read: Callable[[str], Source]


def _find_commits(repository: Repository, change: Change) -> str:
    """The merge base of the change, whose commits are fetched where they are missing."""
    for name in (change.head, change.base):
        if not _HASH.fullmatch(name):
            raise BotError(f"the host names a commit {name[:60]!r}, which is none")
    if any(repository.commit(name) is None for name in (change.head, change.base)):
        repository.fetch(*change.refs)
    missing = [name[:12] for name in (change.head, change.base) if repository.commit(name) is None]
    if missing:
        raise BotError(
            f"the clone has no commit {', '.join(missing)}, and fetching {' '.join(change.refs)} did not help"
        )
    try:
        return repository.merge_base(change.base, change.head)
    except GitError:
        if not repository.deepen():
            raise
        return repository.merge_base(change.base, change.head)


@contextmanager
def compare(
    folder: str,
    change: Change,
    paths: Sequence[str],
    baseline_path: str | None,
    prices: Mapping[str, Evidence],
) -> Iterator[Comparison]:
    """Scan both sides of a change; sources can be read until the context ends.

    Raises :class:`BotError` or :class:`~awp_lint.detector.errors.UsageError` where they cannot be had.
    """
    repository = Repository(folder)
    merge_base = _find_commits(repository, change)
    changed = parse_diff(repository.diff(merge_base, change.head, context=3))
    with tempfile.TemporaryDirectory(prefix="awp-lint-bot-") as scratch:
        before, after = Path(scratch, "base"), Path(scratch, "head")
        for side, commit in ((before, merge_base), (after, change.head)):
            side.mkdir()
            repository.extract(commit, side, _wanted)
            (side / ".git").touch()  # module names begin at the root of the repository
        settings = load_settings(before, None, False, project_target(before), [])
        old, new = _scan(before, paths, settings), _scan(after, paths, settings)
        known = [known_of(f) for f in old.findings]
        found = [f for f in new.findings if f.suppressed is None]
        matched = baseline.match(
            found, [*known, *_baseline(repository, merge_base, baseline_path or _inside(before, settings))]
        )
        silenced = baseline.match([f for f in new.findings if f.suppressed is not None], known)
        fresh = [f for f in matched.new if f.confidence.order >= settings.confidence.order]
        from awp_lint.patches.ranking import rank

        ranked = rank(dataclasses.replace(f, evidence=prices.get(f.id)) for f in fresh)
        sources: dict[str, Source] = {}

        def read(path: str) -> Source:
            if path not in sources:
                sources[path] = Source.decode(path, (after / path).read_bytes())
            return sources[path]

        yield Comparison(
            merge_base=merge_base,
            new=tuple(ranked),
            silenced=silenced.new,
            changed=changed,
            problems=tuple(p for p in new.problems if p.path in changed),
            read=read,
        )


def _wanted(entry: Entry) -> bool:
    """Files that a scan may want. Ignore files are left out: what git tracks is not ignored."""
    return entry.size <= MAX_BYTES and entry.path.rpartition("/")[2] != ".gitignore"


def _scan(side: Path, paths: Sequence[str], settings: Settings) -> ScanResult:
    here = [path for path in paths if (side / path).exists()]
    return scan(here, settings, cwd=str(side))


def _inside(side: Path, settings: Settings) -> str | None:
    """The baseline that the settings name, by its path in the repository."""
    if settings.baseline is None:
        return None
    path = os.path.relpath(settings.baseline, side.absolute())
    if path.startswith(".."):
        raise UsageError(f"{path}: the baseline that the settings name lies outside the repository")
    return path.replace(os.sep, "/")


def _baseline(repository: Repository, commit: str, path: str | None) -> list[baseline.Known]:
    data = repository.content(commit, path or DEFAULT_BASELINE)
    if data is None:
        if path is not None:
            raise UsageError(f"{path}: no such baseline in the merge base {commit[:12]}")
        return []
    return baseline.parse(data, path or DEFAULT_BASELINE)
