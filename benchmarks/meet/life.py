"""The life of a pull request, told: what each run of the bot sends, and what stands there afterwards.

    python benchmarks/meet/life.py

The host is the one of tests/bot: in this process, with a memory, each request checked against GitHub's description.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from pytest_httpserver import HTTPServer

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "bot"))

from botworld import DECODE, FAULTY, MODEL, World, git  # noqa: E402
from fake_github import FakeGitHub, Fault  # noqa: E402

from awp_lint.detector.bot import github  # noqa: E402
from awp_lint.detector.bot.cli import main as bot  # noqa: E402


class Told:
    """Runs the bot and prints what it did."""

    def __init__(self, hub: FakeGitHub, world: World) -> None:
        self.hub = hub
        self.words = ["--repo", "acme/server", "--pr", "7", "--base-url", hub.url, "--folder", str(world.clone)]

    def run(self, what: str, *more: str) -> None:
        """One run."""
        self.hub.calls.clear()
        started, used = time.perf_counter(), time.process_time()
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = bot([*self.words, *more])
        wall, cpu = time.perf_counter() - started, time.process_time() - used
        reads = sum(call.method == "GET" for call in self.hub.calls)
        graphql = sum(call.path == "/graphql" for call in self.hub.calls)
        writes = self.hub.writes()
        bodies = [comment["body"] for comment in self.hub.review_comments]
        states = {word: sum(f"state={word}" in body for body in bodies) for word in ("open", "fixed", "ignored")}
        print(what)
        print(f"  exit {code}, {wall:.1f} s ({cpu:.1f} s of CPU)")
        print(f"  {reads} reads, {graphql} of GraphQL, {len(writes)} writes")
        for row in writes[:8]:
            print(f"    {row}")
        if len(writes) > 8:
            print(f"    … {len(writes) - 8} more")
        title = self.hub.summary().split("\n")[1] if self.hub.comments else "no summary"
        print(f"  {title}; comments: {', '.join(f'{count} {word}' for word, count in states.items())}")
        print(f"  said: {' / '.join(out.getvalue().strip().splitlines())}")


def many() -> dict[str, str | bytes | None]:
    """300 files, 600 findings, more than 20,000 lines."""
    files: dict[str, str | bytes | None] = {}
    for number in range(300):
        rows = [f'    x = x + torch.arange({n} + {number}).to("cuda")' for n in range(2)]
        filler = [f"# filler {number} {n}" for n in range(60)]
        head = ["import torch", "", "", f"def f{number}(x: torch.Tensor):"]
        files[f"srv/m{number}.py"] = "\n".join([*head, *rows, "    return x", *filler, ""])
    imports = "".join(f"from srv.m{number} import f{number}\n" for number in range(300))
    calls = "".join(f"        logits = f{number}(logits)\n" for number in range(300))
    files["srv/decode.py"] = DECODE.replace("import torch\n", "import torch\n" + imports).replace(
        "        logits = model(logits)\n", "        logits = model(logits)\n" + calls
    )
    return files


def main() -> None:
    """Tell it."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    github.PAUSE = 0.01
    github._sleep = lambda seconds: print(f"    (waits {seconds:.0f} s)")
    os.environ["GITHUB_TOKEN"] = "ghp_0123456789secret"
    with tempfile.TemporaryDirectory() as scratch, HTTPServer() as server:
        os.environ["XDG_CACHE_HOME"] = str(Path(scratch, "cache"))
        world = World(Path(scratch))
        hub = FakeGitHub(server, world)
        told = Told(hub, world)
        hub.push(world.commit(FAULTY))
        told.run("opened with three new findings")
        told.run("run again: nothing is said twice")
        hub.push(world.commit({"srv/decode.py": "# moved\n" * 40 + FAULTY["srv/decode.py"], "srv/model.py": MODEL}))
        told.run("pushed: one fixed, the others 40 lines further down")
        (thread,) = [c for c in hub.review_comments if "rule=AWP102" in c["body"]]
        hub.say("dev", "/awp ignore AWP102 the loop must stop here", reply_to=thread["id"])
        told.run("/awp ignore AWP102, by somebody with write access")
        git(world.origin, "reset", "-q", "--hard", world.base)
        hub.push(world.commit(FAULTY, "once more"))
        told.run("force-pushed: the fixed one is back")
        for _ in range(18):
            with contextlib.redirect_stdout(io.StringIO()):
                bot(told.words)
        told.run("the twentieth run")
        hub.faults = [
            Fault("PATCH", ".*/pulls/comments/.*", 403, 2, {"message": "API rate limit exceeded"}, {"Retry-After": "7"})
        ]
        hub.push(world.commit({"srv/decode.py": DECODE, "srv/model.py": MODEL}))
        told.run("everything fixed, with a rate limit on the way")
        git(world.origin, "checkout", "-q", "-B", "change", world.base)
        hub.review_comments.clear()
        hub.comments.clear()
        hub.push(world.commit(many()))
        told.run("another change: 300 files, 600 findings, 20,000 lines")
        told.run("run again")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB, scan processes apart")


if __name__ == "__main__":
    main()
