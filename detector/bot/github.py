"""GitHub, github.com or an Enterprise server, through PyGithub.

Reads are retried by the library. A write is not: a request that timed out may have been carried out, so a repeated one
could say everything twice. It is repeated only when GitHub refused it (a rate limit), or when looking again shows that
it did not arrive.
"""

from __future__ import annotations

import logging
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from awp_lint.detector.bot.host import BotError, Change, CheckResult, Draft, Note, Place

if TYPE_CHECKING:
    from github.CheckRun import CheckRun
    from github.Commit import Commit
    from github.GithubException import GithubException
    from github.PullRequest import PullRequest, ReviewComment

ACTIONS_LOGIN = "github-actions[bot]"
PAUSE = 1.0  # seconds between writes, as GitHub asks for
_sleep = time.sleep
_CHECK = "awp-lint"
_BATCH = 50  # annotations that one call may carry
_ATTEMPTS = 4
_MAX_WAIT = 300.0  # seconds for a rate limit; a job that waits longer is better run again

_THREADS = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviewThreads(first: 100, after: $after) {
      pageInfo { hasNextPage endCursor }
      nodes { id isResolved comments(first: 1) { nodes { databaseId } } }
    } } } }
"""


class GitHub:
    """One pull request. ``login`` is whose comments are ours, where the token cannot say itself."""

    name = "github"
    body_limit = 60_000  # of 65,536

    def __init__(
        self,
        repository: str,
        number: int,
        token: str,
        base_url: str = "https://api.github.com",
        login: str | None = None,
    ) -> None:
        import github

        owner, _, name = repository.partition("/")
        if not owner or not name or "/" in name:
            raise BotError(f"{repository!r} is no repository such as owner/name")
        logging.getLogger("github").setLevel(logging.CRITICAL)  # it writes requests down
        self._login = login
        self._token = token
        self._number = number
        self._names = (owner, name)
        self._web = base_url.replace("://api.github.com", "://github.com").removesuffix("/").removesuffix("/api/v3")
        retry = github.GithubRetry(
            total=_ATTEMPTS, backoff_factor=PAUSE, max_rate_limit_wait=_MAX_WAIT, secondary_rate_wait=60,
            allowed_methods=frozenset({"GET"}),
        )  # fmt: skip
        self._client = github.Github(
            auth=github.Auth.Token(token),
            base_url=base_url.rstrip("/"),
            user_agent="awp-lint-bot",
            timeout=60,
            per_page=100,
            retry=retry,
            seconds_between_requests=None,
            seconds_between_writes=PAUSE,
            lazy=True,
        )
        self._repo = self._client.get_repo(repository)
        self._found: PullRequest | None = None
        self._seen: set[str] | None = None  # ids of the comments that were there at the last look

    # reading

    def _pull(self) -> PullRequest:
        if self._found is None:
            with told(f"pull request {self._number} of {'/'.join(self._names)}"):
                self._found = self._repo.get_pull(self._number)
        return self._found

    def change(self) -> Change:
        """The pull request as it is now."""
        with told("the pull request"):
            pull = self._pull()
            base, head = pull.base, pull.head
            if base is None or head is None:
                raise BotError("GitHub answers with something that is no pull request")
            # The head's repository is None once its fork is deleted.
            fork = head.repo is None or head.repo.full_name != base.repo.full_name
            return Change(
                self._number, base.sha, head.sha, fork, (f"refs/heads/{base.ref}", f"refs/pull/{self._number}/head")
            )

    def me(self) -> str:
        """The login whose comments are ours. A workflow's token may not ask; its login is always the same."""
        if self._login is None:
            from github import GithubException

            try:
                self._login = self._client.get_user().login
            except GithubException as error:
                if error.status != 403 or _is_limit(error):
                    raise _error(error, "the token's user") from None
                self._login = ACTIONS_LOGIN
        return self._login

    def notes(self) -> list[Note]:
        """Review comments and comments on the pull request, each kind oldest first."""
        with told("the comments"):
            me = self.me()
            found: list[Note] = []
            replies: dict[str, int] = {}
            for kind, inline in (("pulls", True), ("issues", False)):
                for row in self._pages(f"{self._repo.url}/{kind}/{self._number}/comments"):
                    name, root = str(row["id"]), str(row.get("in_reply_to_id") or row["id"])
                    author = (row.get("user") or {}).get("login", "")
                    replies[root] = replies.get(root, -1) + 1
                    found.append(Note(name, root, row.get("body") or "", author, author == me, inline))
            found = [replace(note, answers=replies[note.id]) if note.id == note.root else note for note in found]
            self._seen = {note.id for note in found}
            return found

    def _pages(self, url: str) -> Iterator[dict[str, Any]]:
        """All rows of a list as plain data: the library's objects would ask again for each one's missing fields."""
        page, seen = 1, set[int]()
        while True:
            headers, rows = self._client.requester.requestJsonAndCheck(
                "GET", url, parameters={"per_page": 100, "page": page}
            )
            if not isinstance(rows, list):
                raise BotError("GitHub answers with something that is no list of comments")
            new = [row for row in rows if row["id"] not in seen]
            yield from new
            seen.update(row["id"] for row in new)
            # A server that names a next page for ever, as one behind a broken proxy may, ends too.
            if not new or 'rel="next"' not in headers.get("link", ""):
                return
            page += 1

    def may_write(self, author: str) -> bool:
        """Whether a person may push to the repository."""
        from github import UnknownObjectException

        with told("permissions"):
            try:
                return self._repo.get_collaborator_permission(author) in ("admin", "write")
            except UnknownObjectException:
                return False

    def suggestion(self, place: Place) -> str:
        """The lines are the comment's."""
        return "suggestion"

    def link(self, change: Change, path: str, line: int) -> str:
        """The address of a line at the head."""
        quoted = urllib.parse.quote(path, errors="replace")
        return f"{self._web}/{'/'.join(self._names)}/blob/{change.head}/{quoted}#L{line}"

    # writing

    def review(self, change: Change, summary: str, drafts: Sequence[Draft]) -> list[Draft]:
        """One review with all comments. Where GitHub refuses it, one comment at a time tells which it is."""
        from github import GithubException

        pull = self._pull()
        with told("the commit"):
            commit = self._repo.get_commit(change.head)
        before = self._before()

        def landed() -> bool:
            return any(n.own and n.inline and n.id not in before for n in self.notes())

        def send() -> None:
            pull.create_review(commit=commit, body=summary, event="COMMENT", comments=[self._placed(d) for d in drafts])

        try:
            self._write(send, landed, "the review")
        except GithubException as error:
            if error.status != 422:
                raise _error(error, "the review") from None
        else:
            return []
        return [draft for draft in drafts if not self._single(commit, draft)]

    def _before(self) -> set[str]:
        """The comments that are there before a write."""
        return set(self._seen) if self._seen is not None else {note.id for note in self.notes()}

    def _single(self, commit: Commit, draft: Draft) -> bool:
        """Make one review comment; False where GitHub does not take it."""
        from github import GithubException

        before = self._before()
        row: dict[str, Any] = dict(self._placed(draft))
        try:
            self._write(
                lambda: self._pull().create_review_comment(commit=commit, **row),
                lambda: any(n.own and n.inline and n.id not in before for n in self.notes()),
                "a review comment",
            )
        except GithubException as error:
            if error.status != 422:
                raise _error(error, "a review comment") from None
            return False
        return True

    def comment(self, body: str) -> None:
        """A comment on the pull request."""
        body = self._clean(body)
        from github import GithubException

        def landed() -> bool:
            return any(n.own and not n.inline and n.body == body for n in self.notes())

        try:
            self._write(lambda: self._pull().create_issue_comment(body), landed, "a comment")
        except GithubException as error:
            raise _error(error, "a comment") from None

    def edit(self, note: Note, body: str) -> None:
        """Replace an own comment's text; doing it twice does no harm."""
        self._again("PATCH", note, {"body": self._clean(body)})

    def delete(self, note: Note) -> None:
        """Take back an own comment."""
        self._again("DELETE", note, None)

    def _clean(self, text: str) -> str:
        """Without the token, should the change's own code hold it."""
        return text.replace(self._token, "***")

    def _placed(self, draft: Draft) -> ReviewComment:
        place = draft.place
        row: ReviewComment = {
            "path": place.path, "body": self._clean(draft.body), "line": place.last, "side": "RIGHT",
        }  # fmt: skip
        if place.first < place.last:
            row["start_line"], row["start_side"] = place.first, "RIGHT"
        return row

    def resolve(self, notes: Sequence[Note], resolved: bool) -> str:
        """Threads are known to GraphQL alone, and not every token may close them."""
        from github import GithubException

        wanted = {note.id for note in notes}
        mutation = "resolveReviewThread" if resolved else "unresolveReviewThread"
        try:
            for thread in self._threads():
                first = thread["comments"]["nodes"]
                if first and str(first[0]["databaseId"]) in wanted and thread["isResolved"] is not resolved:
                    self._client.requester.graphql_named_mutation(
                        mutation, {"threadId": thread["id"]}, "thread { isResolved }"
                    )
        except (GithubException, KeyError, TypeError) as error:
            status = error.status if isinstance(error, GithubException) else "an answer that is none"
            return f"threads were not {'resolved' if resolved else 'reopened'}: the token may not ({status})"
        return ""

    def _threads(self) -> Iterator[dict[str, Any]]:
        after = None
        while True:
            owner, name = self._names
            variables = {"owner": owner, "name": name, "number": self._number, "after": after}
            _, answer = self._client.requester.graphql_query(_THREADS, variables)
            page = answer["data"]["repository"]["pullRequest"]["reviewThreads"]
            yield from page["nodes"]
            if not page["pageInfo"]["hasNextPage"]:
                return
            after = page["pageInfo"]["endCursor"]

    def check(self, change: Change, result: CheckResult) -> str:
        """A check run with annotations, 50 a call. One of the same content is left alone, or completed if a run that
        made it was killed half-way."""
        from github import GithubException

        output: dict[str, Any] = {"title": result.title[:250], "summary": self._clean(result.summary)}
        try:
            run = self._same_check(change, result)
            if run is not None and run.status == "completed":
                return ""
            if run is None:
                made: list[CheckRun] = []
                self._write(
                    lambda: made.append(
                        self._repo.create_check_run(
                            _CHECK, change.head, external_id=result.digest, status="in_progress", output=output
                        )
                    ),
                    lambda: self._same_check(change, result) is not None,
                    "the check",
                )
                run = made[0] if made else self._same_check(change, result)
                assert run is not None
            done = run.output.annotations_count or 0
            for start in range(done, len(result.annotations), _BATCH):
                batch = list(result.annotations[start : start + _BATCH])
                run.edit(output={**output, "annotations": batch})
            run.edit(status="completed", conclusion=result.conclusion)
        except GithubException as error:
            if error.status in (403, 404) and not _is_limit(error):
                return "no check run: the token may not make one (checks: write is for apps and workflow tokens)"
            raise _error(error, "the check run") from None
        return ""

    def _same_check(self, change: Change, result: CheckResult) -> CheckRun | None:
        runs = self._repo.get_commit(change.head).get_check_runs(check_name=_CHECK)
        return next((run for run in runs if run.external_id == result.digest), None)

    def _again(self, method: str, note: Note, body: dict[str, Any] | None) -> None:
        """A change of an own comment, which does no harm when it is done twice."""
        from github import GithubException

        url = f"{self._repo.url}/{'pulls' if note.inline else 'issues'}/comments/{note.id}"
        try:
            self._write(
                lambda: self._client.requester.requestJsonAndCheck(method, url, input=body), lambda: False, "a comment"
            )
        except GithubException as error:
            if error.status != 404:  # gone meanwhile: nothing left to do
                raise _error(error, "a change of a comment") from None

    def _write(self, action: Callable[[], object], landed: Callable[[], bool], what: str) -> None:
        """Carry out a write once, whatever happens on the way. Raises GithubException where it is refused."""
        import requests
        from github import GithubException

        for attempt in range(_ATTEMPTS):
            last = attempt == _ATTEMPTS - 1
            try:
                action()
                return
            except GithubException as error:
                wait = _limit_wait(error)
                if wait is None and (error.status < 500 or last):
                    raise
                if wait is not None and (wait > _MAX_WAIT or last):
                    raise
                if wait is None and landed():
                    return
                _sleep(wait if wait is not None else 2.0**attempt)
            except requests.RequestException as error:
                if landed():
                    return
                if last:
                    raise BotError(f"{what}: {_connection(error)}") from None
                _sleep(2.0**attempt)


# errors --------------------------------------------------------------------------------------------------------------


@contextmanager
def told(what: str) -> Iterator[None]:
    """Errors of the library as one line of ours."""
    import requests
    from github import GithubException

    try:
        yield
    except GithubException as error:
        raise _error(error, what) from None
    except requests.RequestException as error:
        raise BotError(f"{what}: {_connection(error)}") from None


def _connection(error: Exception) -> str:
    return f"GitHub cannot be reached ({type(error).__name__})"


def _message(error: GithubException) -> str:
    data = error.data
    words = data.get("message", "") if isinstance(data, dict) else ""
    return " ".join(str(words).split())[:200]


def _is_limit(error: GithubException) -> bool:
    words = _message(error).lower()
    headers = {key.lower() for key in error.headers or {}}
    return error.status == 429 or "rate limit" in words or "abuse detection" in words or "retry-after" in headers


def _limit_wait(error: GithubException) -> float | None:
    """Seconds until a rate limit is over; None where it is none."""
    if error.status not in (403, 429) or not _is_limit(error):
        return None
    headers = {key.lower(): value for key, value in (error.headers or {}).items()}
    after, reset = str(headers.get("retry-after", "")), str(headers.get("x-ratelimit-reset", ""))
    if after.isdigit():
        return float(after)
    if reset.isdigit() and str(headers.get("x-ratelimit-remaining", "0")) == "0":
        return max(0.0, float(reset) - time.time()) + 1.0
    return 60.0


def _error(error: GithubException, what: str) -> BotError:
    said = _message(error)
    status = error.status
    if status == 401:
        return BotError("GitHub does not accept the token (401)")
    if _is_limit(error):
        wait = _limit_wait(error)
        when = f"; free again in {wait:.0f} s" if wait is not None else ""
        return BotError(f"{what}: GitHub's rate limit is used up{when}: run again later")
    if status == 403:
        return BotError(f"{what}: the token may not do this (403: {said}); it needs pull-requests: write")
    if status == 404:
        return BotError(f"{what}: GitHub finds none, or the token may not see it (404)")
    if status >= 500:
        return BotError(f"{what}: GitHub fails ({status}): run again later")
    return BotError(f"{what}: GitHub refuses it ({status}: {said})")
