"""A thread by its life. Its ``get_ident`` goes to the next thread as soon as it has ended: in a server with a thread a
request that is at once.
"""

from __future__ import annotations

import contextlib
from _thread import _local
from typing import Callable


class Life:
    """One object for as long as a thread runs. ``at_end`` is called by the thread itself, as the last that it does."""

    __slots__ = ("at_end", "over")

    def __init__(self) -> None:
        self.over = False
        self.at_end: Callable[[], None] | None = None


class _Sentinel:
    """Held by nothing but its thread, which lets go of it when it ends."""

    __slots__ = ("life",)

    def __init__(self, life: Life) -> None:
        self.life = life

    def __del__(self) -> None:
        life = self.life
        if life.at_end is not None:
            with contextlib.suppress(Exception):  # there is nobody left to tell
                life.at_end()
        life.over = True


_here = _local()


def here() -> Life:
    """The calling thread's."""
    try:
        life: Life = _here.sentinel.life
    except AttributeError:
        life = Life()
        _here.sentinel = _Sentinel(life)
    return life
