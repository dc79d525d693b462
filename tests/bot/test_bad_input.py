"""Hosts that refuse, repositories that are not whole, code that means harm: one clear line, and safe to run again."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from botworld import BASE, DECODE, FAULTY, MODEL, World, git, too_late
from fake_github import ROOT, FakeGitHub, Fault
from markdown_it import MarkdownIt

from awp_lint.detector.bot.cli import main

Bot = Callable[..., int]
LIMIT = {"message": "API rate limit exceeded for installation"}


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault("GET", f"{ROOT}/pulls/7", 401, body={"message": "Bad credentials"}), "does not accept the token"),
        (Fault("GET", f"{ROOT}/pulls/7", 404), "GitHub finds none, or the token may not see it"),
        (Fault("GET", f"{ROOT}/pulls/7", 403, 9, LIMIT, {"x-ratelimit-reset": "9999999999"}), "rate limit is used up"),
        (Fault("POST", ".*/reviews", 403), "the token may not do this"),
        (Fault("POST", ".*/reviews", 403, 9, LIMIT, {"Retry-After": "900"}), "free again in 900 s: run again later"),
        (Fault("POST", ".*/reviews", 503, 9), "GitHub fails (503): run again later"),
        (Fault("POST", ".*/issues/7/comments", 410), "GitHub refuses it (410: no)"),
        (Fault("GET", f"{ROOT}/pulls/7/comments", 200, body={"odd": 1}), "no list of comments"),
        (Fault("GET", f"{ROOT}/pulls/7", 200, body={"odd": 1}), "something that is no pull request"),
        (Fault("GET", f"{ROOT}/pulls/7", 410, body={"message": "version gone"}), "refuses it (410: version gone)"),
    ],
)
def test_a_host_that_refuses(
    hub: FakeGitHub, world: World, bot: Bot, capsys: pytest.CaptureFixture[str], fault: Fault, words: str
) -> None:
    hub.push(world.commit(FAULTY))
    hub.faults = [fault]
    assert bot() == 2
    err = capsys.readouterr().err
    assert words in err and err.count("\n") == 1 and err.startswith("awp-lint-bot: ")
    hub.faults = []
    assert bot() == 0
    assert len(hub.review_comments) == 3 and len(hub.comments) == 1


@pytest.mark.parametrize("status", [403, 429])
def test_a_rate_limit_is_waited_for(hub: FakeGitHub, world: World, bot: Bot, slept: list[float], status: int) -> None:
    hub.push(world.commit(FAULTY))
    hub.faults = [Fault("POST", ".*/reviews", status, 2, LIMIT, {"Retry-After": "7"})]
    assert bot() == 0
    assert slept == [7.0, 7.0] and len(hub.reviews) == 1


def test_a_server_that_fails_twice_is_asked_again(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hub.push(world.commit(FAULTY))
    hub.faults = [
        Fault("GET", f"{ROOT}/pulls/7/comments", 502, 2),
        Fault("POST", ".*/reviews", 502, 2),
        Fault("PATCH", ".*/check-runs/.*", 500, 1),
    ]
    assert bot() == 2 or len(hub.reviews) == 1
    assert bot() == 0
    assert len(hub.reviews) == 1 and hub.checks[-1]["status"] == "completed"


def test_answers_that_come_too_late(
    hub: FakeGitHub, world: World, bot: Bot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.push(world.commit(FAULTY))
    late = too_late(monkeypatch)
    for path in ("/pulls/7", "/pulls/7/comments"):
        late[:] = [("GET", path)] * 9
        assert bot() == 2
        err = capsys.readouterr().err
        assert "GitHub cannot be reached (ReadTimeout)" in err and err.count("\n") == 1
    late[:] = [("POST", "/reviews"), ("POST", "/issues/7/comments"), ("POST", "/check-runs")]
    assert bot() == 0
    assert late == []
    assert len(hub.review_comments) == 3 and len(hub.reviews) == len(hub.comments) == len(hub.checks) == 1


def test_a_review_of_which_one_comment_arrives(
    hub: FakeGitHub, world: World, bot: Bot, capsys: pytest.CaptureFixture[str]
) -> None:
    """The review is refused, its comments are sent one by one, and after the first the host fails."""
    hub.push(world.commit(FAULTY))
    plain = hub._one_comment
    hub.faults = [Fault("POST", ".*/reviews", 422)]
    hub._one_comment = (  # type: ignore[method-assign]
        lambda call: (503, {"message": "no"}, {}) if hub.review_comments else plain(call)
    )
    assert bot() == 2
    assert "GitHub fails (503): run again later" in capsys.readouterr().err
    assert len(hub.review_comments) == 1 and hub.comments == []
    hub._one_comment = plain  # type: ignore[method-assign]
    assert bot() == 0
    assert len(hub.review_comments) == 3 and len({c["body"] for c in hub.review_comments}) == 3
    assert len(hub.comments) == 1


def test_a_line_that_the_host_does_not_show(hub: FakeGitHub, world: World, bot: Bot) -> None:
    """The host leaves a large file's diff out: the review is refused, and each comment tried alone."""
    hub.push(world.commit(FAULTY))
    shown = world.shown

    def without(base: str, head: str) -> dict[str, set[int]]:
        return {path: lines for path, lines in shown(base, head).items() if path != "srv/decode.py"}

    world.shown = without  # type: ignore[method-assign]
    assert bot() == 0
    assert [c["path"] for c in hub.review_comments] == ["srv/model.py"]
    assert hub.summary().count("the host takes no comment here") == 2


def test_a_token_without_checks_comments_all_the_same(
    hub: FakeGitHub, world: World, bot: Bot, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.push(world.commit(FAULTY))
    hub.faults = [Fault("POST", ".*/check-runs", 403, 9)]
    assert bot() == 0
    assert "no check run: the token may not make one" in capsys.readouterr().out
    assert len(hub.review_comments) == 3


def test_threads_that_the_token_may_not_close(
    hub: FakeGitHub, world: World, bot: Bot, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.push(world.commit(FAULTY))
    bot()
    hub.push(world.commit({"srv/model.py": MODEL}))
    hub.faults = [Fault("POST", "/graphql", 403, 9, {"message": "Resource not accessible by integration"})]
    assert bot() == 0
    assert "threads were not resolved: the token may not" in capsys.readouterr().out
    assert "1 fixed" in hub.summary()


# the repository ------------------------------------------------------------------------------------------------------


def test_a_fork_and_a_shallow_clone_are_fetched(hub: FakeGitHub, world: World, bot: Bot, tmp_path: Path) -> None:
    hub.fork = True
    for number in range(3):
        world.commit({"README.md": f"{number}\n"})
    hub.push(world.commit(FAULTY))
    git(tmp_path, "clone", "-q", "--depth=1", "--branch=main", f"file://{world.origin}", "shallow")
    assert bot("--folder", str(tmp_path / "shallow")) == 0
    assert len(hub.review_comments) == 3


def test_a_detached_head_is_as_good_as_a_branch(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hub.push(world.commit(FAULTY))
    git(world.clone, "checkout", "-q", "--detach")
    assert bot() == 0
    assert len(hub.review_comments) == 3


def test_no_git(
    hub: FakeGitHub, world: World, bot: Bot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.push(world.commit(FAULTY))
    monkeypatch.setenv("PATH", str(world.clone / "nothing"))
    assert bot("--folder", str(world.origin)) == 2
    assert "git is not installed" in capsys.readouterr().err and hub.writes() == []


def test_no_repository_no_commit_no_common_ancestor(
    hub: FakeGitHub, world: World, bot: Bot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.push("0" * 40)
    assert bot() == 2
    assert "the clone has no commit 000000000000" in capsys.readouterr().err
    assert bot("--folder", str(tmp_path)) == 2
    assert "not inside a git repository" in capsys.readouterr().err
    git(world.origin, "checkout", "-q", "--orphan", "alone")
    hub.push(world.commit({"new.py": "x = 1\n"}))
    assert bot() == 2
    assert "no common ancestor" in capsys.readouterr().err
    assert hub.writes() == []


def test_no_code_of_the_change_is_run(hub: FakeGitHub, world: World, bot: Bot, tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    evil = f"import pathlib\npathlib.Path({str(proof)!r}).touch()\n"
    files: dict[str, str | bytes | None] = dict.fromkeys(
        ("sitecustomize.py", "conftest.py", "setup.py", "srv/__init__.py"), evil
    )
    files[".gitattributes"] = "*.py filter=evil diff=evil\n"
    git(world.clone, "config", "filter.evil.smudge", f"touch {proof}; cat")
    git(world.clone, "config", "diff.evil.textconv", f"touch {proof}; cat")
    git(world.clone, "config", "diff.external", f"touch {proof}")
    hub.push(world.commit({**FAULTY, **files}))
    assert bot() == 0
    assert len(hub.review_comments) == 3 and not proof.exists()


# hostile code --------------------------------------------------------------------------------------------------------


def check_body(body: str) -> None:
    """A comment as a host renders it holds our own elements and nothing else."""
    html = str(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(body))
    html = re.sub(r"<code.*?</code>|<!-- [\w/ =.,-]+ -->", "", html, flags=re.DOTALL)
    ours = {"p", "strong", "em", "ul", "li", "pre", "details", "summary", "sub", "h3", "s", "a"}
    ours |= {"table", "thead", "tbody", "tr", "th", "td"}
    assert {name.lower() for name in re.findall(r"<(?!/)([a-z!][\w-]*)", html, re.IGNORECASE)} <= ours, html
    assert set(re.findall(r'<a href="(https?://[^/"]+)', html)) <= set(re.findall(r"(http://localhost:\d+)", html)), (
        html
    )
    assert "@everyone" not in html and "`" not in re.sub("<summary>.*?</summary>", "", html), html


EVIL = '''"@everyone ![x](https://evil.example/a.png) <img src=x onerror=1> ``` ` /close | \\x1b[31m"'''


def test_hostile_code_comes_out_inert(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hostile = FAULTY["srv/decode.py"].replace("logits[:, -1] == 0", f"logits[{EVIL}] == 0")
    name = "srv/@acme `x` <b>.py"
    hub.push(world.commit({"srv/decode.py": hostile, name: FAULTY["srv/model.py"].replace("Head", "@Head".strip("@"))}))
    assert bot() == 0
    bodies = [c["body"] for c in (*hub.review_comments, *hub.comments)]
    assert any("evil.example" in body for body in bodies)
    for body in bodies:
        check_body(body)
        prose = re.sub(r"^(`{3,}).*?^\1$", "", body, flags=re.DOTALL | re.MULTILINE)
        prose = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", prose)
        assert "@everyone" not in prose and "<img" not in prose and "![" not in prose and "\x1b" not in body
        assert not re.search(r"^\s*/close", body, re.MULTILINE)


def test_a_huge_comment_is_cut(hub: FakeGitHub, world: World, bot: Bot) -> None:
    long = "logits['" + "x" * 90_000 + "']"
    hub.push(world.commit({"srv/decode.py": FAULTY["srv/decode.py"].replace("logits[:, -1]", long)}))
    assert bot() == 0
    assert all(len(c["body"]) < 65536 for c in (*hub.review_comments, *hub.comments))
    assert len(hub.open_comments()) >= 2


def test_the_token_appears_nowhere(
    hub: FakeGitHub, world: World, bot: Bot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token = "ghp_0123456789secret"
    leaking = FAULTY["srv/decode.py"].replace("mask = logits < 0", f"mask = logits < 0  # {token}")
    hub.push(world.commit({"srv/decode.py": leaking}))
    bot()
    for fault in (
        Fault("GET", f"{ROOT}/pulls/7", 418, body={"message": f"no {token} here"}),
        Fault("POST", ".*/issues/7/comments", 422, body={"message": token}),
    ):
        hub.faults = [fault]
        hub.comments.clear()
        assert bot() == 2
    from awp_lint.detector.bot import run

    monkeypatch.setattr(run, "make_plan", lambda *_: (_ for _ in ()).throw(RuntimeError(f"oops {token}\n::set-env x")))
    assert bot() == 2
    out = capsys.readouterr()
    assert token not in out.out + out.err and "internal error: RuntimeError: oops ***" in out.err
    assert "::set-env" not in out.err
    assert all(token not in json.dumps(c.body) for c in hub.calls)
    assert all(c.authorization == f"token {token}" for c in hub.calls)


# size and shape ------------------------------------------------------------------------------------------------------


def test_renamed_binary_and_crlf_files_and_hunk_ends(hub: FakeGitHub, world: World, bot: Bot) -> None:
    crlf = FAULTY["srv/decode.py"].replace("\n", "\r\n")
    hub.push(
        world.commit(
            {
                "srv/decode.py": None,
                "srv/decoding.py": crlf.encode(),
                "app.py": BASE["app.py"].replace("srv.decode", "srv.decoding"),
                "data.py": b"\0\1binary",
                "srv/model.py": FAULTY["srv/model.py"],
            }
        )
    )
    assert bot() == 0
    by_path: dict[str, list[str]] = {}
    for row in hub.review_comments:
        by_path.setdefault(row["path"], []).append(row["body"])
    assert len(by_path["srv/decoding.py"]) == 2 and len(by_path["srv/model.py"]) == 1
    assert not any("```suggestion" in body for body in by_path["srv/decoding.py"])
    assert any("No button to apply it: the file's lines end in CR LF" in body for body in by_path["srv/decoding.py"])
    assert "suggestion" in by_path["srv/model.py"][0]


def test_a_suggestion_at_the_first_and_the_last_line_of_a_hunk(hub: FakeGitHub, world: World, bot: Bot) -> None:
    base = "import torch\n\n\ndef first(x):\n    return x\n\n\n" + "# between\n" * 20 + "def last(x):\n    return x\n"
    git(world.origin, "checkout", "-q", "main")
    loop = DECODE.replace("import torch\n", "import torch\nfrom srv.ends import first, last\n").replace(
        "        logits = model(logits)\n", "        logits = model(logits) + first(logits) + last(logits)\n"
    )
    world.base = world.commit({"srv/ends.py": base, "srv/decode.py": loop}, "more")
    git(world.origin, "checkout", "-q", "-B", "change")
    git(world.clone, "fetch", "-q", "origin")
    made = 'x + torch.arange(8).to("cuda")'
    hub.push(world.commit({"srv/ends.py": base.replace("    return x", f"    return {made}")}))
    # A host that shows no context at all: each hunk is one line, its first and its last.
    only = {"srv/ends.py": {5, 29}}
    world.shown = lambda *_: only  # type: ignore[method-assign]
    assert bot() == 0
    rows = {c["line"]: c["body"] for c in hub.review_comments}
    assert set(rows) == only["srv/ends.py"]
    assert all('```suggestion\n    return x + torch.arange(8, device="cuda")\n```' in body for body in rows.values())


def test_three_hundred_files_and_six_hundred_findings(hub: FakeGitHub, world: World, bot: Bot) -> None:
    files: dict[str, str | bytes | None] = {}
    for number in range(300):
        rows = [f'    x = x + torch.arange({n} + {number}).to("cuda")' for n in range(2)]
        filler = [f"# filler {number} {n}" for n in range(60)]
        files[f"srv/m{number}.py"] = "\n".join(
            ["import torch", "", "", f"def f{number}(x: torch.Tensor):", *rows, "    return x", *filler, ""]
        )
    imports = "".join(f"from srv.m{number} import f{number}\n" for number in range(300))
    calls = "".join(f"        logits = f{number}(logits)\n" for number in range(300))
    files["srv/decode.py"] = DECODE.replace("import torch\n", "import torch\n" + imports).replace(
        "        logits = model(logits)\n", "        logits = model(logits)\n" + calls
    )
    hub.push(world.commit(files))
    assert int(git(world.origin, "diff", "--shortstat", "main", "change").split(", ")[1].split()[0]) > 20_000
    assert bot("--max-comments", "7") == 0
    assert len(hub.review_comments) == 7 and len(hub.reviews) == 1
    (check,) = hub.checks
    assert len(check["annotations"]) == 600 and check["status"] == "completed"
    assert "600 new findings" in hub.summary() and "… and 550 more" in hub.summary()
    assert len(hub.summary()) < 65536
    bot("--max-comments", "7")
    assert len(hub.review_comments) == 7 and len(hub.checks) == 1


# the command line ----------------------------------------------------------------------------------------------------


def test_a_notebook_stands_in_the_summary(hub: FakeGitHub, world: World, bot: Bot) -> None:
    code = FAULTY["srv/decode.py"] + "\n\nfor request in requests:\n    generate(Head().to('cuda'), request, 8)\n"
    cell: dict[str, object] = {
        "cell_type": "code",
        "source": code,
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    hub.push(world.commit({"try.ipynb": json.dumps(notebook)}))
    assert bot() == 0
    assert hub.review_comments == [] and "leaves alone" not in hub.summary()
    assert "`try.ipynb:" in hub.summary()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--pr 0", "no number of a pull request"),
        ("--pr 7 --repo nothing", "no repository such as owner/name"),
        ("--repo a/b", "which pull request"),
        ("--pr 7", "which repository"),
        ("--pr 7 --repo a/b --base-url ftp://x", "takes a URL"),
        ("--pr 7 --repo a/b ../up", "below the repository's root"),
        ("--pr 7 --repo a/b --evidence none.json", "the evidence cannot be read"),
        ("--max-comments many", "no number of comments"),
        ("--fail-on sometimes", "invalid choice"),
    ],
)
def test_wrong_use(line: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("GITHUB_EVENT_PATH", "GITHUB_REPOSITORY", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_TOKEN", "x" * 20)
    assert main(line.split()) == 2
    assert words in capsys.readouterr().err


def test_no_token(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("AWP_LINT_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert main(["--repo", "a/b", "--pr", "1"]) == 2
    assert "no token: set AWP_LINT_TOKEN or GITHUB_TOKEN" in capsys.readouterr().err


def event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: object) -> None:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(content))
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(path))
    monkeypatch.setenv("GITHUB_REPOSITORY", "acme/server")


def test_events_name_their_pull_request(
    hub: FakeGitHub, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = world.commit(FAULTY)
    hub.push(head)
    monkeypatch.setenv("GITHUB_API_URL", hub.url)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "steps.md"))
    run = {
        "head_sha": head, "head_branch": "change", "pull_requests": [],
        "head_repository": {"owner": {"login": "guest"}},
    }  # fmt: skip
    for content in (
        {"pull_request": {"number": 7}},
        {"issue": {"number": 7, "pull_request": {}}, "comment": {}},
        {"workflow_run": run},
    ):
        event(tmp_path, monkeypatch, content)
        assert main(["--folder", str(world.clone)]) == 0
    assert len(hub.review_comments) == 3
    assert (tmp_path / "steps.md").read_text().count("awp-lint/1 summary") == 3
    more: tuple[dict[str, object], ...] = (
        {"issue": {"number": 7}},
        {"workflow_run": {**run, "head_sha": "0" * 40}},
        {"push": {}},
    )
    for wrong in more:
        event(tmp_path, monkeypatch, wrong)
        assert main(["--folder", str(world.clone)]) == 2


def test_help_needs_no_library() -> None:
    import sys

    code = (
        "import sys\nfrom awp_lint.detector.bot.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('github', 'gitlab', 'libcst', 'jsonschema', 'unidiff') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.rstrip().endswith("[]") and "awp-lint-bot" in run.stdout
    assert DECODE  # the helper module is whole
