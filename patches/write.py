"""Write patched files: only over the very bytes that were scanned, all or nothing a file."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from awp_lint.detector.wholefile import make_whole
from awp_lint.patches.plan import FilePatch


class WriteError(Exception):
    """A file that was not written; the message is one line and nothing was changed."""


def write_patch(patch: FilePatch, roots: Sequence[Path] = ()) -> None:
    """Replace the file's content atomically, its mode kept; or make the file. Raises :class:`WriteError`.

    ``roots`` are the resolved files and folders that may be changed: a link that leads out of them is refused.
    """
    path = Path(patch.source.path)
    try:
        if patch.created:
            make_whole(path, patch.after.encode())
            return
        real = path.resolve(strict=True)  # through a symbolic link, so that the link itself survives
        if roots and not any(real == root or root in real.parents for root in roots):
            raise WriteError(f"{path}: a link to {real}, outside of what was scanned; nothing was changed")
        if real.read_bytes() != patch.source.raw:
            raise WriteError(f"{path}: changed since it was scanned; run again")
        if not os.access(real, os.W_OK):
            raise WriteError(f"{path}: not writable; nothing was changed")
        data = patch.source.encode(patch.after)
        handle, temporary = tempfile.mkstemp(prefix=f".{real.name}.", dir=real.parent)
        try:
            with os.fdopen(handle, "wb") as binary:
                binary.write(data)
            os.chmod(temporary, real.stat().st_mode & 0o7777)
            os.replace(temporary, real)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise WriteError(f"{path}: {error.strerror or error}; nothing was changed") from None
    except UnicodeEncodeError as error:
        raise WriteError(f"{path}: the patch cannot be written as {patch.source.encoding}: {error.reason}") from None
