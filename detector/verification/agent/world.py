"""Keeps a trial call from touching the world: files, sockets, processes, and the program's own output.

The audit hook that this needs cannot be taken away again; outside a trial call it returns at once.
"""

from __future__ import annotations

import sys
from _thread import _local
from typing import Any

_FORBIDDEN = (
    "socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind", "subprocess.Popen", "os.system", "os.remove",
    "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "os.kill", "os.posix_spawn",
    "os.spawn", "os.exec", "shutil.rmtree", "shutil.move", "shutil.copyfile", "ftplib.connect", "smtplib.connect",
    "urllib.Request",
)  # fmt: skip
_WRITES = 0x1 | 0x2 | 0x40 | 0x200 | 0x400  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND

_here = _local()
_hooked = False


class Touches(Exception):
    """The trial call was about to do something that others would see."""


def _audit(event: str, arguments: Any) -> None:
    if not getattr(_here, "trial", False):
        return
    if event == "open":
        _, mode, flags = (*arguments, None, None)[:3]
        writes = isinstance(flags, int) and bool(flags & _WRITES)
        if not writes and not (isinstance(mode, str) and any(letter in mode for letter in "wax+")):
            return
    elif event not in _FORBIDDEN:
        return
    _here.touched = event
    raise Touches(event)


class _Muted:
    """A standard stream without what the trial's thread writes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: Any) -> Any:
        return len(text) if getattr(_here, "trial", False) else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Trial:
    """A block in which this thread's calls touch nothing. ``touched`` names what was stopped, or None."""

    def __init__(self) -> None:
        self.touched: Any = None

    def __enter__(self) -> Trial:
        global _hooked
        if not _hooked:
            _hooked = True
            sys.addaudithook(_audit)
        self._out, self._err = sys.stdout, sys.stderr
        self._muted = (_Muted(self._out), _Muted(self._err))
        sys.stdout, sys.stderr = self._muted
        _here.touched = None
        _here.trial = True
        return self

    def __exit__(self, *exception: object) -> None:
        _here.trial = False
        self.touched = _here.touched
        if sys.stdout is self._muted[0]:
            sys.stdout = self._out
        if sys.stderr is self._muted[1]:
            sys.stderr = self._err
