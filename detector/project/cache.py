"""Results kept between runs: bytes by key, in one SQLite file below the user's cache folder.

Safe under concurrent runs and never a reason to fail: what cannot be read, written or locked is simply not cached, and
neither is anything where somebody else could have put it. The size is bounded; what has not been used for longest goes
first.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

LIMIT_BYTES = 512 * 1024 * 1024
_DAY = 86_400
_FORMAT = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, data BLOB NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
"""


def cache_folder() -> Path:
    """Where the platform keeps caches; ``AWP_LINT_CACHE_DIR`` overrides it."""
    chosen = os.environ.get("AWP_LINT_CACHE_DIR")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("awp-lint", appauthor=False))


@cache
def tool_signature() -> bytes:
    """What results depend on besides the input: the Python version and every file of this package."""
    import awp_lint

    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{_FORMAT} {sys.version_info[:2]} {awp_lint.__version__}".encode())
    for top in awp_lint.__path__:
        for name in ("detector", "rules", "patches"):
            for folder, folders, files in os.walk(os.path.join(top, name), followlinks=True):
                folders.sort()
                for file in sorted(files):
                    if file.endswith((".py", ".facts")):
                        status = os.stat(os.path.join(folder, file))
                        digest.update(f"{name}/{file} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.digest()


def _ours(path: Path) -> bool:
    """Whether a file or folder, if it is there, belongs to this user and not everybody may write to it."""
    if not hasattr(os, "geteuid"):
        return True
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & stat.S_IWOTH


class Cache:
    """A store of bytes. Without a usable file, or when switched off, it holds nothing."""

    def __init__(self, enabled: bool = True, folder: Path | None = None) -> None:
        self._db: sqlite3.Connection | None = None
        if not enabled:
            return
        try:
            place = folder if folder is not None else cache_folder()
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (_ours(place) and _ours(place / f"results-{_FORMAT}.sqlite")):
                return
            self._db = sqlite3.connect(place / f"results-{_FORMAT}.sqlite", timeout=5, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=OFF")
            self._db.execute(_SCHEMA)
        except (OSError, sqlite3.Error):
            self._close()

    def _close(self) -> None:
        if self._db is not None:
            db, self._db = self._db, None
            try:
                db.close()
            except sqlite3.Error:
                return

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """What is known of these keys; entries found are marked as used."""
        found: dict[bytes, bytes] = {}
        if self._db is None:
            return found
        now = int(time.time())
        stale: list[tuple[int, bytes]] = []
        try:
            for key in keys:
                row = self._db.execute("SELECT data, used FROM entries WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    found[key] = row[0]
                    if now - row[1] > _DAY:
                        stale.append((now, key))
            if stale:
                self._write("UPDATE entries SET used = ? WHERE key = ?", stale)
        except sqlite3.Error:
            self._close()
        return found

    def put_many(self, entries: Mapping[bytes, bytes]) -> None:
        """Keep these entries, and no more than the limit altogether."""
        if self._db is None or not entries:
            return
        now = int(time.time())
        try:
            self._write("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", [(k, v, now) for k, v in entries.items()])
            self._trim()
        except sqlite3.Error:
            self._close()

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        assert self._db is not None
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany(statement, rows)
        except sqlite3.Error:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _trim(self) -> None:
        assert self._db is not None
        pages, size, free = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size", "freelist_count")
        )
        if (pages - free) * size <= LIMIT_BYTES:
            return
        total = 0
        last = None
        for used, length in self._db.execute("SELECT used, length(data) FROM entries ORDER BY used DESC"):
            total += length
            if total > LIMIT_BYTES // 2:
                last = used
                break
        if last is not None:
            self._db.execute("DELETE FROM entries WHERE used <= ?", (last,))

    def close(self) -> None:
        """Give the file back."""
        self._close()


def key(*parts: bytes | str) -> bytes:
    """A key from parts, the tool's signature included."""
    digest = hashlib.blake2b(tool_signature(), digest_size=20)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()
