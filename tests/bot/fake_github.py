"""GitHub as far as the bot can tell: it remembers comments, knows which lines a diff shows, and can fail on demand.

Every request is checked against GitHub's own description of its interface (``data/github-api.json``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botworld import World
from described import Description
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

DESCRIPTION = Description("GitHub", "github-api.json")
ROOT = "/repos/acme/server"


@dataclass
class Fault:
    """What goes wrong with the next matching requests: an answer instead, before or after the work is done."""

    method: str
    path: str
    status: int
    times: int = 1
    body: dict[str, Any] = field(default_factory=lambda: {"message": "no"})
    headers: dict[str, str] = field(default_factory=dict)
    after: bool = False  # the work is done, and the answer is lost


@dataclass
class Call:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    authorization: str


class FakeGitHub:
    """The state of one repository and its pull request 7."""

    def __init__(self, server: HTTPServer, world: World) -> None:
        self.server = server
        self.world = world
        self.url = server.url_for("").rstrip("/")
        self.me: str | None = "awp-bot"
        self.writers = {"owner": "admin", "dev": "write", "guest": "read"}
        self.head = world.base
        self.fork = False
        self.review_comments: list[dict[str, Any]] = []
        self.comments: list[dict[str, Any]] = []
        self.reviews: list[dict[str, Any]] = []
        self.checks: list[dict[str, Any]] = []
        self.resolved: dict[int, bool] = {}
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self.page = 100
        self._next = 1000
        server.expect_request(re.compile(".*")).respond_with_handler(self.answer)

    # for tests

    def push(self, head: str) -> None:
        """A new head of the pull request."""
        self.head = head

    def say(self, author: str, body: str, reply_to: int | None = None) -> int:
        """A person's comment."""
        number = self._number()
        row = {"id": number, "body": body, "user": {"login": author}}
        if reply_to is None:
            self.comments.append(row)
        else:
            self.review_comments.append({**row, "in_reply_to_id": reply_to})
        return number

    def writes(self) -> list[str]:
        """The writing requests so far, shortened; and forgets all."""
        rows = [
            f"{c.method} {c.path.replace(ROOT, '')}" for c in self.calls if c.method != "GET" and c.path != "/graphql"
        ]
        self.calls.clear()
        return rows

    def open_comments(self) -> list[dict[str, Any]]:
        """Own review comments that say nothing of fixed or ignored."""
        return [c for c in self.review_comments if "state=open" in c["body"]]

    def summary(self) -> str:
        """The one summary."""
        (row,) = [c for c in self.comments if "awp-lint/1 summary" in c["body"]]
        return str(row["body"])

    # answering

    def answer(self, request: Request) -> Response:
        body = json.loads(request.get_data() or b"null")
        call = Call(
            request.method, request.path, request.args.to_dict(), body, request.headers.get("Authorization", "")
        )
        self.calls.append(call)
        if request.path != "/graphql":
            DESCRIPTION.check(call.method, call.path, set(call.query), call.body)
        fault = next((f for f in self.faults if f.method == call.method and re.fullmatch(f.path, call.path)), None)
        if fault is not None:
            fault.times -= 1
            if not fault.times:
                self.faults.remove(fault)
            if fault.after:
                self._work(call)
            return Response(json.dumps(fault.body), fault.status, fault.headers, content_type="application/json")
        status, data, headers = self._work(call)
        return Response("" if data is None else json.dumps(data), status, headers, content_type="application/json")

    def _work(self, call: Call) -> tuple[int, Any, dict[str, str]]:
        routes: list[tuple[str, str, Callable[..., Any]]] = [
            ("GET", "/user", self._user),
            ("GET", f"{ROOT}/pulls", self._pulls),
            ("GET", f"{ROOT}/pulls/7", self._pull),
            ("GET", f"{ROOT}/pulls/7/comments", lambda c: self._paged(c, self.review_comments)),
            ("POST", f"{ROOT}/pulls/7/comments", self._one_comment),
            ("POST", f"{ROOT}/pulls/7/reviews", self._review),
            ("GET", f"{ROOT}/issues/7/comments", lambda c: self._paged(c, self.comments)),
            ("POST", f"{ROOT}/issues/7/comments", self._say),
            ("GET", rf"{ROOT}/commits/[0-9a-f]+", lambda c: self._commit(c)),
            ("GET", rf"{ROOT}/commits/[0-9a-f]+/check-runs", self._check_runs),
            ("POST", f"{ROOT}/check-runs", self._new_check),
            ("PATCH", rf"{ROOT}/check-runs/\d+", self._edit_check),
            ("GET", rf"{ROOT}/collaborators/[^/]+/permission", self._permission),
            ("GET", rf"{ROOT}/(pulls|issues)/comments/\d+", self._get),
            ("PATCH", rf"{ROOT}/(pulls|issues)/comments/\d+", self._edit),
            ("DELETE", rf"{ROOT}/(pulls|issues)/comments/\d+", self._delete),
            ("POST", "/graphql", self._graphql),
        ]
        for method, path, handler in routes:
            if method == call.method and re.fullmatch(path, call.path):
                found = handler(call)
                return found if isinstance(found, tuple) else (200, found, {})
        return 404, {"message": "Not Found"}, {}

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _paged(self, call: Call, rows: list[dict[str, Any]]) -> tuple[int, Any, dict[str, str]]:
        size = min(int(call.query.get("per_page", 30)), self.page)
        page = int(call.query.get("page", 1))
        headers = {}
        if len(rows) > page * size:
            headers["Link"] = f'<{self.url}{call.path}?per_page={size}&page={page + 1}>; rel="next"'
        return 200, rows[(page - 1) * size : page * size], headers

    def _user(self, call: Call) -> tuple[int, Any, dict[str, str]]:
        if self.me is None:
            return 403, {"message": "Resource not accessible by integration"}, {}
        return 200, {"login": self.me, "url": f"{self.url}/user"}, {}

    def _pull(self, call: Call) -> dict[str, Any]:
        side = {"full_name": "acme/server"}
        return {
            "number": 7,
            "url": f"{self.url}{ROOT}/pulls/7",
            "issue_url": f"{self.url}{ROOT}/issues/7",
            "state": "open",
            "base": {"sha": self.world.base, "ref": "main", "repo": side},
            "head": {
                "sha": self.head,
                "ref": "change",
                "repo": {"full_name": "guest/server"} if self.fork else side,
            },
        }

    def _pulls(self, call: Call) -> list[dict[str, Any]]:
        return [self._pull(call)] if call.query.get("head") == "guest:change" else []

    def _commit(self, call: Call) -> dict[str, Any]:
        sha = call.path.rpartition("/")[2]
        return {"sha": sha, "url": f"{self.url}{ROOT}/commits/{sha}"}

    def _fits(self, row: dict[str, Any]) -> bool:
        shown = self.world.shown(self.world.base, self.head).get(row["path"], set())
        first, last = row.get("start_line", row["line"]), row["line"]
        return first <= last and set(range(first, last + 1)) <= shown and len(row["body"]) <= 65536

    def _post(self, row: dict[str, Any]) -> dict[str, Any]:
        number = self._number()
        made = {
            **row,
            "id": number,
            "user": {"login": self._login()},
            "url": f"{self.url}{ROOT}/pulls/comments/{number}",
        }
        self.review_comments.append(made)
        return made

    def _login(self) -> str:
        return self.me or "github-actions[bot]"

    def _review(self, call: Call) -> tuple[int, Any, dict[str, str]]:
        rows = call.body["comments"]
        if not all(self._fits(row) for row in rows) or call.body["commit_id"] != self.head:
            return 422, {"message": "Unprocessable Entity", "errors": ["Line could not be resolved"]}, {}
        for row in rows:
            self._post(row)
        self.reviews.append(call.body)
        return 200, {"id": self._number()}, {}

    def _one_comment(self, call: Call) -> tuple[int, Any, dict[str, str]]:
        if not self._fits(call.body):
            return 422, {"message": "Validation Failed"}, {}
        return 201, self._post(call.body), {}

    def _say(self, call: Call) -> tuple[int, Any, dict[str, str]]:
        if len(call.body["body"]) > 65536:
            return 422, {"message": "body is too long"}, {}
        number = self._number()
        row = {"id": number, "user": {"login": self._login()}, "body": call.body["body"]}
        self.comments.append({**row, "url": f"{self.url}{ROOT}/issues/comments/{number}"})
        return 201, self.comments[-1], {}

    def _find(self, call: Call) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        rows = self.review_comments if "/pulls/" in call.path else self.comments
        number = int(call.path.rpartition("/")[2])
        return rows, next((row for row in rows if row["id"] == number), None)

    def _get(self, call: Call) -> tuple[int, Any, dict[str, str]]:
        _, row = self._find(call)
        if row is None:
            return 404, {"message": "Not Found"}, {}
        kind = "pulls" if "/pulls/" in call.path else "issues"
        return 200, {**row, "url": f"{self.url}{ROOT}/{kind}/comments/{row['id']}"}, {}

    def _edit(self, call: Call) -> tuple[int, Any, dict[str, str]]:
        _, row = self._find(call)
        if row is None:
            return 404, {"message": "Not Found"}, {}
        if row["user"]["login"] != self._login():
            return 403, {"message": "not yours"}, {}
        row["body"] = call.body["body"]
        return 200, row, {}

    def _delete(self, call: Call) -> tuple[int, Any, dict[str, str]]:
        rows, row = self._find(call)
        if row is None:
            return 404, {"message": "Not Found"}, {}
        rows.remove(row)
        return 204, None, {}

    def _permission(self, call: Call) -> tuple[int, Any, dict[str, str]]:
        name = call.path.split("/")[-2]
        if name not in self.writers:
            return 404, {"message": "Not Found"}, {}
        return 200, {"permission": self.writers[name]}, {}

    def _check_runs(self, call: Call) -> dict[str, Any]:
        sha = call.path.split("/")[-2]
        rows = [c for c in self.checks if c["head_sha"] == sha and c["name"] == call.query["check_name"]]
        return {"total_count": len(rows), "check_runs": rows}

    def _new_check(self, call: Call) -> tuple[int, Any, dict[str, str]]:
        number = self._number()
        row = {**call.body, "id": number, "url": f"{self.url}{ROOT}/check-runs/{number}", "annotations": []}
        row["output"] = {**call.body["output"], "annotations_count": 0}
        self.checks.append(row)
        return 201, row, {}

    def _edit_check(self, call: Call) -> tuple[int, Any, dict[str, str]]:
        number = int(call.path.rpartition("/")[2])
        (row,) = [c for c in self.checks if c["id"] == number]
        annotations = (call.body.get("output") or {}).get("annotations", [])
        if len(annotations) > 50:
            return 422, {"message": "too many annotations"}, {}
        row["annotations"] += annotations
        row["output"]["annotations_count"] = len(row["annotations"])
        row.update({key: call.body[key] for key in ("status", "conclusion") if key in call.body})
        return 200, row, {}

    def _graphql(self, call: Call) -> dict[str, Any]:
        query, variables = call.body["query"], call.body["variables"]
        if "reviewThreads" in query:
            roots = [c for c in self.review_comments if "in_reply_to_id" not in c]
            nodes = [
                {
                    "id": f"T{c['id']}",
                    "isResolved": self.resolved.get(c["id"], False),
                    "comments": {"nodes": [{"databaseId": c["id"]}]},
                }
                for c in roots
            ]
            page = {"pageInfo": {"hasNextPage": False, "endCursor": None}, "nodes": nodes}
            return {"data": {"repository": {"pullRequest": {"reviewThreads": page}}}}
        name = "unresolveReviewThread" if "unresolveReviewThread" in query else "resolveReviewThread"
        self.resolved[int(variables["input"]["threadId"][1:])] = name == "resolveReviewThread"
        return {"data": {name: {"thread": {"isResolved": name == "resolveReviewThread"}}}}
