"""GitLab, gitlab.com or another server, through python-gitlab.

Comments are made as draft notes and published together, so that a reader gets one message. Drafts that a killed run
left behind are thrown away first; older servers, which have none, get one discussion a comment.
"""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from awp_lint.detector.bot.host import BotError, Change, CheckResult, Draft, Note, Place
from awp_lint.detector.bot.words import marker_of

if TYPE_CHECKING:
    from gitlab.v4.objects import ProjectMergeRequest

_DEVELOPER = 30  # the access level that may push
_ATTEMPTS = 4
_sleep = time.sleep


class GitLab:
    """One merge request."""

    name = "gitlab"
    body_limit = 200_000  # of a million; a reader's patience ends before

    def __init__(self, repository: str, number: int, token: str, base_url: str = "https://gitlab.com") -> None:
        import gitlab

        self._token = token
        self._number = number
        self._base = base_url.rstrip("/").removesuffix("/api/v4")
        self._repository = repository
        self._client = gitlab.Gitlab(
            self._base, private_token=token, timeout=60, per_page=100, user_agent="awp-lint-bot", keep_base_url=True
        )
        self._project = self._client.projects.get(repository, lazy=True)
        self._found: ProjectMergeRequest | None = None
        self._me = ""
        self._levels: dict[str, int] | None = None

    # reading

    def _request(self) -> ProjectMergeRequest:
        if self._found is None:
            with told(f"merge request {self._number} of {self._repository}"):
                self._found = self._read(lambda: self._project.mergerequests.get(self._number))
        return self._found

    def change(self) -> Change:
        """The merge request as it is now."""
        request = self._request()
        refs = request.attributes.get("diff_refs") or {}
        if not refs.get("head_sha") or not refs.get("start_sha"):
            raise BotError(f"merge request {self._number}: GitLab has not made its diff yet: run again later")
        return Change(
            number=self._number,
            base=refs["start_sha"],
            head=refs["head_sha"],
            fork=request.source_project_id != request.target_project_id,
            refs=(f"refs/heads/{request.target_branch}", f"refs/merge-requests/{self._number}/head"),
            position=tuple(sorted((key, str(refs[key])) for key in ("base_sha", "head_sha", "start_sha"))),
        )

    def me(self) -> str:
        """The token's user."""
        if not self._me:
            with told("the token's user"):
                self._read(self._client.auth)
            assert self._client.user is not None
            self._me = str(self._client.user.username)
        return self._me

    def notes(self) -> list[Note]:
        """All notes of the discussions, oldest first."""
        me = self.me()
        found: list[Note] = []
        with told("the discussions"):
            for discussion in self._read(lambda: self._request().discussions.list(get_all=True)):
                rows = [row for row in discussion.attributes.get("notes") or () if not row.get("system")]
                for row in rows:
                    author = (row.get("author") or {}).get("username", "")
                    first = row is rows[0]
                    found.append(
                        Note(
                            id=str(row["id"]),
                            root=str(rows[0]["id"]),
                            body=row.get("body") or "",
                            author=author,
                            own=author == me,
                            inline=rows[0].get("type") == "DiffNote",
                            thread=discussion.id,
                            answers=len(rows) - 1 if first else 0,
                        )
                    )
        return found

    def may_write(self, author: str) -> bool:
        """Whether a person is at least a developer of the project, also by a group."""
        if self._levels is None:
            with told("the project's members"):
                rows = self._read(lambda: self._project.members_all.list(get_all=True))
                self._levels = {str(row.username): int(row.access_level) for row in rows}
        return self._levels.get(author, 0) >= _DEVELOPER

    def suggestion(self, place: Place) -> str:
        """The lines are told by how far they reach above and below the comment's own."""
        return f"suggestion:-{place.added - place.first}+{place.last - place.added}"

    def link(self, change: Change, path: str, line: int) -> str:
        """The address of a line at the head."""
        quoted = urllib.parse.quote(path, errors="replace")
        return f"{self._base}/{self._repository}/-/blob/{change.head}/{quoted}#L{line}"

    # writing

    def review(self, change: Change, summary: str, drafts: Sequence[Draft]) -> list[Draft]:
        """All comments published together; ``summary`` is not needed, since GitLab has no text of a review."""
        from gitlab.exceptions import GitlabError

        request = self._request()
        position = dict(change.position)
        with told("the draft notes"):
            try:
                left = self._drafts()
            except GitlabError as error:
                if error.response_code != 404:
                    raise
                return [draft for draft in drafts if not self._discuss(draft, position)]
            others = [note for note in left if marker_of(_text(note)) is None]
            for note in left:
                if note not in others:
                    self._write(note.delete)
            refused = [draft for draft in drafts if not self._drafted(draft, position)]
            if len(refused) == len(drafts):
                return refused
            if not others:
                self._write(request.draft_notes.bulk_publish, lambda: not self._drafts())
                return refused
            # The token's owner is in the middle of a review of their own, which must not be published with ours.
            for note in self._drafts():
                if marker_of(_text(note)) is not None:
                    self._write(note.publish, lambda note=note: note.id not in {n.id for n in self._drafts()})  # type: ignore[misc]
        return refused

    def _drafts(self) -> list[Any]:
        return list(self._read(lambda: self._request().draft_notes.list(get_all=True)))

    def _drafted(self, draft: Draft, position: dict[str, str]) -> bool:
        text = self._clean(draft.body)
        row = {"note": text, "position": _position(draft, position)}
        return self._taken(
            lambda: self._request().draft_notes.create(row),
            lambda: any(_text(note).rstrip() == text.rstrip() for note in self._drafts()),
        )

    def _discuss(self, draft: Draft, position: dict[str, str]) -> bool:
        text = self._clean(draft.body)
        row = {"body": text, "position": _position(draft, position)}
        return self._taken(
            lambda: self._request().discussions.create(row),
            lambda: any(note.own and note.body.rstrip() == text.rstrip() for note in self.notes()),
        )

    def _taken(self, action: Callable[[], object], landed: Callable[[], bool]) -> bool:
        """Carry out a comment; False where GitLab does not find its line in the diff."""
        from gitlab.exceptions import GitlabError

        try:
            self._write(action, landed)
        except GitlabError as error:
            if error.response_code not in (400, 422):
                raise
            return False
        return True

    def comment(self, body: str) -> None:
        """A note on the merge request. One whose answer was lost is looked for before it is made again."""
        text = self._clean(body)
        with told("a note"):
            self._write(
                lambda: self._request().notes.create({"body": text}),
                lambda: any(n.own and n.body.rstrip() == text.rstrip() for n in self.notes()),
            )

    def edit(self, note: Note, body: str) -> None:
        """Replace an own note's text."""
        self._gone_or(lambda: self._request().notes.update(int(note.id), {"body": self._clean(body)}))

    def delete(self, note: Note) -> None:
        """Take back an own note."""
        self._gone_or(lambda: self._request().notes.delete(int(note.id)))

    def resolve(self, notes: Sequence[Note], resolved: bool) -> str:
        """Close or reopen threads, which the author of a note may."""
        from gitlab.exceptions import GitlabError

        try:
            for note in notes:
                self._write(
                    lambda note=note: self._request().discussions.update(note.thread, {"resolved": resolved})  # type: ignore[misc]
                )
        except GitlabError as error:
            return (
                f"threads were not {'resolved' if resolved else 'reopened'}: GitLab refuses it ({error.response_code})"
            )
        return ""

    def check(self, change: Change, result: CheckResult) -> str:
        """The pipeline's own job is the commit's status; code quality reports come from ``--format gitlab``."""
        return ""

    def _clean(self, text: str) -> str:
        """Without the token, should the change's own code hold it."""
        return text.replace(self._token, "***")

    def _gone_or(self, action: Callable[[], object]) -> None:
        from gitlab.exceptions import GitlabError

        try:
            self._write(action)
        except GitlabError as error:
            if error.response_code != 404:  # gone meanwhile: nothing left to do
                raise _error(error, "a change of a note") from None

    def _read(self, action: Callable[[], Any]) -> Any:
        """A read, repeated while the server fails; the library waits for rate limits by itself."""
        import requests
        from gitlab.exceptions import GitlabError

        for attempt in range(_ATTEMPTS):
            last = attempt == _ATTEMPTS - 1
            try:
                return action()
            except GitlabError as error:
                if (error.response_code or 0) < 500 or last:
                    raise
            except requests.RequestException as error:
                if last:
                    raise BotError(f"GitLab cannot be reached ({type(error).__name__})") from None
            _sleep(2.0**attempt)
        raise AssertionError("unreachable")

    def _write(self, action: Callable[[], object], landed: Callable[[], bool] = lambda: False) -> None:
        """A write, repeated while the server fails, unless looking again shows that it has arrived."""
        import requests
        from gitlab.exceptions import GitlabError

        for attempt in range(_ATTEMPTS):
            last = attempt == _ATTEMPTS - 1
            try:
                action()
                return
            except GitlabError as error:
                if (error.response_code or 0) < 500 or last:
                    raise
            except requests.RequestException as error:
                if last:
                    raise BotError(f"GitLab cannot be reached ({type(error).__name__})") from None
            if landed():
                return
            _sleep(2.0**attempt)


def _text(note: Any) -> str:
    return str(note.attributes.get("note") or "")


def _position(draft: Draft, refs: dict[str, str]) -> dict[str, Any]:
    place = draft.place
    return {
        "position_type": "text",
        **refs,
        "old_path": place.old_path,
        "new_path": place.path,
        "new_line": place.added,
    }


@contextmanager
def told(what: str) -> Iterator[None]:
    """Errors of the library as one line of ours."""
    import requests
    from gitlab.exceptions import GitlabError

    try:
        yield
    except GitlabError as error:
        raise _error(error, what) from None
    except requests.RequestException as error:
        raise BotError(f"{what}: GitLab cannot be reached ({type(error).__name__})") from None


def _error(error: Any, what: str) -> BotError:
    status = error.response_code or 0
    said = " ".join(str(error.error_message).split())[:200]
    if status == 401:
        return BotError("GitLab does not accept the token (401)")
    if status == 403:
        return BotError(f"{what}: the token may not do this (403); it needs the scope api and the role Reporter")
    if status == 404:
        return BotError(f"{what}: GitLab finds none, or the token may not see it (404)")
    if status == 429:
        return BotError(f"{what}: GitLab's rate limit is used up: run again later")
    if status >= 500:
        return BotError(f"{what}: GitLab fails ({status}): run again later")
    return BotError(f"{what}: GitLab refuses it ({status}: {said})")
