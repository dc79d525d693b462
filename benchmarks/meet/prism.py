"""The bot's GitHub client against a server that knows GitHub's description and nothing of the bot.

    npm install --prefix FOLDER @stoplight/prism-cli@5.14.2 @octokit/openapi@23.0.2
    python benchmarks/meet/prism.py FOLDER

Prism answers from the description's examples and refuses requests that it does not allow. It remembers nothing, so this
shows that every request is well-formed and every real answer is understood; the life of a pull request is in tests/bot.
"""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from github.PaginatedList import PaginatedList

from awp_lint.detector.bot import github
from awp_lint.detector.bot.host import BotError, CheckResult, Draft, Note, Place

ROOT = Path(__file__).resolve().parents[2]
PORT = 4010


def cut(description: dict[str, Any], paths: set[str]) -> dict[str, Any]:
    """The paths and all that they refer to: the whole takes Prism a minute to load."""
    kept: dict[str, Any] = {name: description[name] for name in ("openapi", "info")}
    kept["paths"] = {path: item for path, item in description["paths"].items() if path in paths}
    todo, seen = collections.deque([kept["paths"]]), set()
    while todo:
        node = todo.popleft()
        if isinstance(node, list):
            todo.extend(node)
        elif isinstance(node, dict):
            if "content" in node:
                node.pop("headers", None)  # the example of a list names a next page for ever, one that is not there
            todo.extend(node.values())
            name = node.get("$ref")
            if isinstance(name, str) and name.startswith("#/components/") and name not in seen:
                seen.add(name)
                _, _, kind, key = name.split("/")
                kept.setdefault("components", {}).setdefault(kind, {})[key] = description["components"][kind][key]
                todo.append(description["components"][kind][key])
    return kept


def exercise(folder: Path) -> int:
    """Every request once; the number of those that failed."""
    github.PAUSE = 0.01
    plain = PaginatedList.__init__

    def without_accept(self: PaginatedList[Any], *more: Any, headers: Any = None, **named: Any) -> None:
        # PyGithub asks for check runs with the older media type, which GitHub takes and its description does not list.
        plain(self, *more, headers=None, **named)

    PaginatedList.__init__ = without_accept  # type: ignore[method-assign]
    host = github.GitHub("octocat/Hello-World", 1347, "token", f"http://127.0.0.1:{PORT}")
    change = host.change()
    print(f"change: base {change.base[:8]}, head {change.head[:8]}, fork {change.fork}")
    notes = host.notes()
    print(f"notes: {len(notes)}, by {sorted({note.author for note in notes})}")
    place = Place("file1.txt", "file1.txt", 2, 4, 4)
    note = Note("1", "1", "old", "octocat", True, inline=True)
    annotations = tuple(
        {"path": "a.py", "start_line": n, "end_line": n, "annotation_level": "warning", "message": "m", "title": "t"}
        for n in range(1, 61)
    )
    result = CheckResult("neutral", "2 new findings", "words", "digest", annotations)
    failed = 0
    for name, action in (
        ("who may write", lambda: host.may_write("octocat")),
        (
            "review of two comments",
            lambda: host.review(change, "two", [Draft("a", place, "x"), Draft("b", place, "y")]),
        ),
        ("summary", lambda: host.comment("summary")),
        ("edit of a review comment", lambda: host.edit(note, "new")),
        ("edit of the summary", lambda: host.edit(Note("1", "1", "", "octocat", True, inline=False), "new")),
        ("deletion", lambda: host.delete(note)),
        ("check run of 60 annotations", lambda: host.check(change, result)),
    ):
        try:
            print(f"{name}: {action()!r}")
        except BotError as error:
            failed += 1
            print(f"{name}: FAILED: {error}")
    return failed


def refused() -> None:
    """That a wrong request is noticed at all."""
    body = json.dumps({"body": "x", "event": "SHOUT"}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/repos/o/r/pulls/1/reviews", body, {"Content-Type": "application/json"}
    )
    try:
        urllib.request.urlopen(request)
        print("a wrong request: accepted, so nothing is shown here")
    except urllib.error.HTTPError as error:
        print(f"a wrong request: refused with {error.code}")


def main(folder: Path) -> int:
    """Start Prism, exercise the client, stop it."""
    modules = folder / "node_modules"
    whole = json.loads((modules / "@octokit/openapi/generated/api.github.com.json").read_text())
    ours = json.loads((ROOT / "tests/bot/data/github-api.json").read_text())
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "api.json")
        text = json.dumps(cut(whole, set(ours["paths"])))
        # The examples name GitHub's own host, which the client would refuse to follow from here.
        path.write_text(text.replace("https://api.github.com", f"http://127.0.0.1:{PORT}"))
        command = [str(modules / ".bin/prism"), "mock", "--port", str(PORT), str(path)]
        log = open(Path(scratch, "log"), "w")  # noqa: SIM115
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "CI": "1"})
        try:
            for _ in range(240):
                time.sleep(0.5)
                if "is listening" in Path(scratch, "log").read_text() or process.poll() is not None:
                    break
            refused()
            return exercise(folder)
        finally:
            process.terminate()
            process.wait()
            log.close()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
