"""A merge request on GitLab: the same life, other words."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from botworld import FAULTY, MODEL, World, git, too_late
from fake_gitlab import FakeGitLab, Fault
from pytest_httpserver import HTTPServer

from awp_lint.detector.bot import gitlab
from awp_lint.detector.bot.cli import main

Bot = Callable[..., int]
TOKEN = "glpat-0123456789"


@pytest.fixture
def lab(httpserver: HTTPServer, world: World, monkeypatch: pytest.MonkeyPatch) -> FakeGitLab:
    fake = FakeGitLab(httpserver, world)
    monkeypatch.delenv("AWP_LINT_TOKEN", raising=False)
    monkeypatch.setattr(gitlab, "_sleep", lambda seconds: None)
    for name, value in {
        "GITLAB_CI": "true",
        "CI_PROJECT_PATH": "acme/server",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_SERVER_URL": fake.url,
        "GITLAB_TOKEN": TOKEN,
    }.items():
        monkeypatch.setenv(name, value)
    return fake


@pytest.fixture
def bot(lab: FakeGitLab, world: World) -> Bot:
    return lambda *more: main(["--folder", str(world.clone), *more])


def test_the_first_run_publishes_all_comments_together(lab: FakeGitLab, world: World, bot: Bot) -> None:
    lab.push(world.commit(FAULTY))
    assert bot() == 0
    assert lab.writes() == [*["POST /draft_notes"] * 3, "POST /draft_notes/bulk_publish", "POST /notes"]
    assert lab.published == 1 and lab.tokens == {TOKEN}
    places = {(n["position"]["new_path"], n["position"]["new_line"]): n["body"] for n in lab.inline()}
    assert set(places) == {("srv/decode.py", 12), ("srv/decode.py", 13), ("srv/model.py", 11)}
    assert (
        "```suggestion:-0+0\n        positions = torch.arange(ids.shape[1], device=ids.device)\n```"
        in places["srv/model.py", 11]
    )
    assert f"{lab.url}/acme/server/-/blob/{lab.head}/srv/model.py#L11" in lab.summary()
    assert bot() == 0
    assert lab.writes() == []


def test_fixed_ignored_and_opened_again(lab: FakeGitLab, world: World, bot: Bot) -> None:
    lab.push(world.commit(FAULTY))
    bot()
    lab.writes()
    lab.push(world.commit({"srv/model.py": MODEL, "srv/decode.py": "# moved\n" * 40 + FAULTY["srv/decode.py"]}))
    assert bot() == 0
    (fixed,) = [n for n in lab.inline() if "state=fixed" in n["body"]]
    assert fixed["resolved"] and "rule=AWP602" in fixed["body"] and len(lab.inline()) == 3
    (thread,) = [d["id"] for d in lab.discussions if "rule=AWP102" in d["notes"][0]["body"]]
    lab.say("guest", "/awp ignore AWP102 no", thread)
    bot()
    assert "1 ignored" not in lab.summary() and "it takes write access" in lab.summary()
    lab.say("dev", "/awp ignore AWP102 the loop must stop here", thread)
    bot()
    assert "1 new finding, 1 fixed, 1 ignored" in lab.summary()
    git(world.origin, "reset", "-q", "--hard", world.base)
    lab.push(world.commit(FAULTY, "once more"))
    bot()
    assert len(lab.inline()) == 3 and "state=open" in fixed["body"] and not fixed["resolved"]
    lab.writes()
    for _ in range(3):
        bot()
    assert lab.writes() == []


def test_drafts_of_a_killed_run_are_thrown_away(lab: FakeGitLab, world: World, bot: Bot) -> None:
    lab.push(world.commit(FAULTY))
    lab.faults = [Fault("POST", "/draft_notes/bulk_publish", 500, 9)]
    assert bot() == 2
    assert len(lab.drafts) == 3
    lab.faults = []
    own = {"id": 5, "note": "a draft of the token's owner", "position": lab.drafts[0]["position"]}
    lab.drafts.append(own)
    assert bot() == 0
    assert len(lab.inline()) == 3 and all("awp-lint/1" in n["body"] for n in lab.inline())
    assert lab.drafts == [own]  # publishing all would have published it too


def test_an_older_server_gets_discussions(lab: FakeGitLab, world: World, bot: Bot) -> None:
    lab.has_drafts = False
    lab.push(world.commit(FAULTY))
    assert bot() == 0
    assert len(lab.inline()) == 3 and lab.writes()[:3] == ["POST /discussions"] * 3


def test_a_line_that_gitlab_does_not_find(lab: FakeGitLab, world: World, bot: Bot) -> None:
    lab.push(world.commit(FAULTY))
    lab.faults = [Fault("POST", "/draft_notes", 400, 1)]
    assert bot() == 0
    assert len(lab.inline()) == 2 and lab.summary().count("the host takes no comment here") == 1


def test_a_lost_answer_is_looked_for(lab: FakeGitLab, world: World, bot: Bot) -> None:
    lab.push(world.commit(FAULTY))
    lost = ("/draft_notes", "/draft_notes/bulk_publish", "/notes")
    lab.faults = [Fault("POST", path, 502, 1, after=True) for path in lost]
    assert bot() == 0
    assert lab.summary().count("awp-lint/1 summary") == 1
    assert len(lab.inline()) == 3 and lab.published == 1


def test_a_lost_answer_of_an_older_server(lab: FakeGitLab, world: World, bot: Bot) -> None:
    lab.has_drafts = False
    lab.push(world.commit(FAULTY))
    lab.faults = [Fault("POST", "/discussions", 502, 1, after=True)]
    assert bot() == 0
    assert len(lab.inline()) == 3


def test_answers_that_come_too_late(
    lab: FakeGitLab, world: World, bot: Bot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.push(world.commit(FAULTY))
    late = too_late(monkeypatch)
    for path in ("/merge_requests/7", "/discussions", "/draft_notes"):
        late[:] = [("GET", path)] * 9
        assert bot() == 2
        err = capsys.readouterr().err
        assert "GitLab cannot be reached (ReadTimeout)" in err and err.count("\n") == 1 and TOKEN not in err
    late[:] = [("POST", "/draft_notes"), ("POST", "/bulk_publish"), ("POST", "/notes")]
    assert bot() == 0
    assert late == [] and len(lab.inline()) == 3 and lab.published == 1 and lab.summary()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault("GET", "/api/v4/user", 401), "does not accept the token"),
        (Fault("GET", "", 404), "GitLab finds none, or the token may not see it"),
        (Fault("POST", "/notes", 403), "the token may not do this"),
        (Fault("GET", "/discussions", 503, 9), "GitLab fails (503): run again later"),
        (Fault("POST", "/notes", 429, 99, headers={"Retry-After": "0"}), "rate limit is used up: run again later"),
        (Fault("GET", "", 410, message="API v4 is gone"), "GitLab refuses it (410: API v4 is gone)"),
    ],
)
def test_a_host_that_refuses(
    lab: FakeGitLab, world: World, bot: Bot, capsys: pytest.CaptureFixture[str], fault: Fault, words: str
) -> None:
    lab.push(world.commit(FAULTY))
    lab.faults = [fault]
    assert bot() == 2
    err = capsys.readouterr().err
    assert words in err and err.count("\n") == 1 and TOKEN not in err
    lab.faults = []
    assert bot() == 0
    assert len(lab.inline()) == 3


def test_the_token_is_in_no_note_and_no_line(
    lab: FakeGitLab, world: World, bot: Bot, capsys: pytest.CaptureFixture[str]
) -> None:
    leaking = FAULTY["srv/decode.py"].replace("mask = logits < 0", f"mask = logits < 0  # {TOKEN}")
    lab.push(world.commit({"srv/decode.py": leaking}))
    lab.faults = [Fault("POST", "/notes", 418, message=f"no {TOKEN} here")]
    assert bot() == 2
    assert bot() == 0
    out = capsys.readouterr()
    assert "***" in out.err and TOKEN not in out.out + out.err
    assert len(lab.inline()) == 2 and all(TOKEN not in str(body) for _, _, body in lab.calls)


def test_quick_actions_in_code_do_nothing(lab: FakeGitLab, world: World, bot: Bot) -> None:
    hostile = FAULTY["srv/decode.py"].replace("logits[:, -1] == 0", 'logits["\\n/merge\\n"] == 0')
    lab.push(world.commit({"srv/decode.py": hostile}))
    bot()
    for _, _, body in lab.calls:
        text = (body or {}).get("note") or (body or {}).get("body") or ""
        assert not any(line.lstrip().startswith("/") for line in text.split("\n"))
