"""Write a file whole or not at all, wherever a person may have pointed us to."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path


def write_whole(path: str | Path, data: bytes) -> None:
    """Put ``data`` in the place of the file's content at one moment; an interrupted write leaves what was there.

    Links are followed to what they mean, the mode of an existing file is kept, and nobody can guess the name of the
    file that is written meanwhile. What is no regular file (``/dev/stdout``, a pipe) is written to and not replaced.
    Raises :class:`OSError`.
    """
    target = os.path.realpath(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as stream:
            stream.write(data)
        return
    partial = _written_beside(target, data)
    try:
        if mode is not None:
            os.chmod(partial, stat.S_IMODE(mode))
        os.replace(partial, target)
    except BaseException:
        _drop(partial)
        raise


def make_whole(path: str | Path, data: bytes) -> None:
    """A new file with ``data``, never over one that is there. Raises :class:`OSError`."""
    target = os.path.abspath(path)
    partial = _written_beside(target, data)
    try:
        try:
            os.link(partial, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links: nearly as good
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
            os.replace(partial, target)
    finally:
        _drop(partial)


def _written_beside(target: str, data: bytes) -> str:
    """The data in a file of the same folder, under a name that nobody can have made ready."""
    folder, name = os.path.split(target)
    partial = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(6)}.part")
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
    except BaseException:
        _drop(partial)
        raise
    return partial


def _drop(partial: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(partial)
