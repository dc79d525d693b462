"""GitLab as far as the bot can tell: discussions, draft notes that are published together, members.

Every request is checked against what GitLab says of its interface (``data/gitlab-api.json``).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from botworld import World, git
from described import Description
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

# The client asks for pages of every list; GitLab ignores it where it has none.
DESCRIPTION = Description("GitLab", "gitlab-api.json", {"page", "per_page"})


@dataclass
class Fault:
    """An answer instead of the work, or after it."""

    method: str
    path: str
    status: int
    times: int = 1
    message: str = "no"
    after: bool = False
    headers: dict[str, str] = field(default_factory=dict)


class FakeGitLab:
    """The state of merge request 7."""

    def __init__(self, server: HTTPServer, world: World) -> None:
        self.world = world
        self.url = server.url_for("").rstrip("/")
        self.head = world.base
        self.fork = False
        self.has_drafts = True
        self.members = {"owner": 50, "dev": 30, "guest": 20}
        self.discussions: list[dict[str, Any]] = []
        self.drafts: list[dict[str, Any]] = []
        self.published = 0
        self.calls: list[tuple[str, str, Any]] = []
        self.tokens: set[str] = set()
        self.faults: list[Fault] = []
        self._next = 100
        server.expect_request(re.compile(".*")).respond_with_handler(self.answer)

    def push(self, head: str) -> None:
        """A new head of the merge request."""
        self.head = head

    def say(self, author: str, body: str, thread: str | None = None) -> None:
        """A person's note."""
        note = self._note(author, body, "DiscussionNote")
        if thread is None:
            self.discussions.append({"id": f"d{note['id']}", "notes": [note]})
        else:
            next(d for d in self.discussions if d["id"] == thread)["notes"].append(note)

    def writes(self) -> list[str]:
        """The writing requests so far; and forgets all."""
        rows = [f"{method} {path}" for method, path, _ in self.calls if method != "GET"]
        self.calls.clear()
        return rows

    def inline(self) -> list[dict[str, Any]]:
        """First notes of the threads at lines."""
        return [d["notes"][0] for d in self.discussions if d["notes"][0]["type"] == "DiffNote"]

    def summary(self) -> str:
        """The one summary."""
        notes = [d["notes"][0]["body"] for d in self.discussions]
        (body,) = [text for text in notes if text.startswith("<!-- awp-lint/1 summary")]
        return str(body)

    def answer(self, request: Request) -> Response:
        body = json.loads(request.get_data() or b"null")
        path = request.environ["RAW_URI"].partition("?")[0]
        DESCRIPTION.check(request.method, path, set(request.args), body)
        path = re.sub(r"^/api/v4/projects/(acme%2Fserver|1)(?=/)", "", path).removeprefix("/merge_requests/7")
        self.tokens.add(request.headers.get("PRIVATE-TOKEN", ""))
        self.calls.append((request.method, path, body))
        fault = next((f for f in self.faults if f.method == request.method and re.fullmatch(f.path, path)), None)
        if fault is not None:
            fault.times -= 1
            if not fault.times:
                self.faults.remove(fault)
            if fault.after:
                self._work(request.method, path, body)
            text = json.dumps({"message": fault.message})
            return Response(text, fault.status, fault.headers, content_type="application/json")
        status, data = self._work(request.method, path, body)
        if data is None:
            return Response("", status, content_type="text/plain")
        return Response(json.dumps(data), status, content_type="application/json")

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _note(self, author: str, body: str, kind: str | None) -> dict[str, Any]:
        return {"id": self._number(), "type": kind, "body": body, "author": {"username": author}, "system": False}

    def _work(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if (method, path) == ("GET", "/api/v4/user"):
            return 200, {"id": 1, "username": "awp-bot"}
        if (method, path) == ("GET", ""):
            return 200, self._request()
        if (method, path) == ("GET", "/discussions"):
            return 200, self.discussions
        if (method, path) == ("GET", "/members/all"):
            return 200, [{"id": n, "username": u, "access_level": a} for n, (u, a) in enumerate(self.members.items())]
        if path.startswith("/draft_notes") and not self.has_drafts:
            return 404, {"message": "404 Not Found"}
        if (method, path) == ("GET", "/draft_notes"):
            return 200, self.drafts
        if (method, path) == ("POST", "/draft_notes"):
            return self._draft(body)
        if (method, path) == ("POST", "/draft_notes/bulk_publish"):
            for draft in self.drafts:
                self._start(draft["note"], draft["position"])
            self.drafts.clear()
            self.published += 1
            return 204, None
        if found := re.fullmatch(r"/draft_notes/(\d+)/publish", path):
            (draft,) = [d for d in self.drafts if d["id"] == int(found.group(1))]
            self._start(draft["note"], draft["position"])
            self.drafts.remove(draft)
            return 204, None
        if found := re.fullmatch(r"/draft_notes/(\d+)", path):
            self.drafts[:] = [d for d in self.drafts if d["id"] != int(found.group(1))]
            return 204, None
        if (method, path) == ("POST", "/discussions"):
            if not self._fits(body["position"]):
                return 400, {"message": "line_code can't be blank"}
            self._start(body["body"], body["position"])
            return 201, self.discussions[-1]
        if (method, path) == ("POST", "/notes"):
            note = self._note("awp-bot", body["body"], None)
            self.discussions.append({"id": f"d{note['id']}", "notes": [note]})
            return 201, note
        if found := re.fullmatch(r"/notes/(\d+)", path):
            return self._own(method, int(found.group(1)), body)
        if found := re.fullmatch(r"/discussions/(d\d+)", path):
            thread = next(d for d in self.discussions if d["id"] == found.group(1))
            thread["notes"][0]["resolved"] = body["resolved"]
            return 200, thread
        return 404, {"message": "404 Not Found"}

    def _request(self) -> dict[str, Any]:
        base = git(self.world.origin, "merge-base", self.world.base, self.head)
        refs = {"base_sha": base, "start_sha": self.world.base, "head_sha": self.head}
        return {
            "id": 70, "iid": 7, "project_id": 1, "source_project_id": 2 if self.fork else 1, "target_project_id": 1,
            "target_branch": "main", "source_branch": "change", "diff_refs": refs,
        }  # fmt: skip

    def _fits(self, position: dict[str, Any]) -> bool:
        known = {"position_type", "base_sha", "start_sha", "head_sha", "old_path", "new_path", "new_line"}
        assert set(position) == known
        added = set()
        number = 0
        for row in git(
            self.world.origin, "diff", "-U0", f"{self.world.base}...{self.head}", "--", position["new_path"]
        ).split("\n"):
            if found := re.match(r"@@ -\S+ \+(\d+)", row):
                number = int(found.group(1))
            elif row.startswith("+") and not row.startswith("+++"):
                added.add(number)
                number += 1
        return position["new_line"] in added and position["head_sha"] == self.head

    def _draft(self, body: Any) -> tuple[int, Any]:
        if not self._fits(body["position"]):
            return 400, {"message": "line_code can't be blank"}
        self.drafts.append({"id": self._number(), **body})
        return 201, self.drafts[-1]

    def _start(self, body: str, position: Any) -> None:
        note = {**self._note("awp-bot", body, "DiffNote"), "position": position, "resolved": False}
        self.discussions.append({"id": f"d{note['id']}", "notes": [note]})

    def _own(self, method: str, number: int, body: Any) -> tuple[int, Any]:
        for thread in self.discussions:
            for note in thread["notes"]:
                if note["id"] == number:
                    if note["author"]["username"] != "awp-bot":
                        return 403, {"message": "403 Forbidden"}
                    if method == "DELETE":
                        thread["notes"].remove(note)
                        self.discussions[:] = [d for d in self.discussions if d["notes"]]
                        return 204, None
                    note["body"] = body["body"]
                    return 200, note
        return 404, {"message": "404 Not Found"}
