"""What the bot needs of a code host, as plain data and one protocol. GitHub and GitLab each have a module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class BotError(Exception):
    """The bot cannot go on; the message is one line, without secrets, and running again is safe."""


@dataclass(frozen=True, slots=True)
class Change:
    """A pull or merge request. ``base`` is the tip of the branch it goes to, ``fork`` whether another repository's."""

    number: int
    base: str
    head: str
    fork: bool
    refs: tuple[str, ...] = ()  # what to fetch when the commits are not here
    position: tuple[tuple[str, str], ...] = ()  # the host's own names for the diff, where comments need them


@dataclass(frozen=True, slots=True)
class Note:
    """A comment. ``root`` is the first one of its thread, maybe itself; ``own``: the bot wrote it."""

    id: str
    root: str
    body: str
    author: str
    own: bool
    inline: bool
    thread: str = ""  # the host's name of the thread
    answers: int = 0  # how many other notes the thread has, for its first one


@dataclass(frozen=True, slots=True)
class Place:
    """Lines of the changed file that a comment stands at; ``added`` is the last of them that the change wrote."""

    path: str
    old_path: str
    first: int
    last: int
    added: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A comment to be made at a place, about ``key``."""

    key: str
    place: Place
    body: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the commit's check says. ``annotations`` go out in this order, ``digest`` names it all."""

    conclusion: str  # success | neutral | failure
    title: str
    summary: str
    digest: str
    annotations: tuple[dict[str, Any], ...] = field(default=())


class Host(Protocol):
    """A connection to one change on one host. Every method raises :class:`BotError` where it cannot go on."""

    name: str
    body_limit: int  # characters of a comment

    def change(self) -> Change:
        """The change as it is now."""

    def notes(self) -> list[Note]:
        """All comments, oldest first."""

    def may_write(self, author: str) -> bool:
        """Whether a person may write to the repository that the change goes to."""

    def suggestion(self, place: Place) -> str:
        """The word behind the fence of a suggestion that replaces the lines of ``place``."""

    def link(self, change: Change, path: str, line: int) -> str:
        """The address of a line at the head of the change."""

    def review(self, change: Change, summary: str, drafts: Sequence[Draft]) -> list[Draft]:
        """Make all comments at once; those that the host refuses come back."""

    def comment(self, body: str) -> None:
        """A comment on the change as a whole."""

    def edit(self, note: Note, body: str) -> None:
        """Replace the text of an own comment."""

    def delete(self, note: Note) -> None:
        """Take back an own comment."""

    def resolve(self, notes: Sequence[Note], resolved: bool) -> str:
        """Close or reopen the threads of own comments where the token may; why not, else ""."""

    def check(self, change: Change, result: CheckResult) -> str:
        """Tell the commit's result where the host has a place for it; why not, else ""."""
