"""A pull request from its opening to its merge, against a host that remembers."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from botworld import BASE, DECODE, FAULTY, MODEL, World, git
from fake_github import FakeGitHub, Fault

Bot = Callable[..., int]


def at(hub: FakeGitHub) -> list[tuple[str, int | None, int]]:
    return sorted((c["path"], c.get("start_line"), c["line"]) for c in hub.review_comments if "line" in c)


def test_the_first_run_makes_one_review_and_one_summary(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hub.push(world.commit(FAULTY))
    assert bot() == 0
    assert hub.writes() == [
        "POST /pulls/7/reviews",
        "POST /issues/7/comments",
        "POST /check-runs",
        f"PATCH /check-runs/{hub.checks[0]['id']}",
        f"PATCH /check-runs/{hub.checks[0]['id']}",
    ]
    (review,) = hub.reviews
    assert review["event"] == "COMMENT" and review["commit_id"] == hub.head
    assert review["body"] == "awp-lint: 3 findings on the lines that this change writes."
    assert at(hub) == [("srv/decode.py", None, 12), ("srv/decode.py", None, 13), ("srv/model.py", None, 11)]
    by_rule = {re.search(r"rule=(AWP\d+)", c["body"]).group(1): c["body"] for c in review["comments"]}  # type: ignore[union-attr]
    assert (
        "\n```suggestion\n        positions = torch.arange(ids.shape[1], device=ids.device)\n```\n" in by_rule["AWP602"]
    )
    assert "Safe rewrite: " in by_rule["AWP602"] and "Rewrite to be checked (memory, timing): " in by_rule["AWP105"]
    assert "```suggestion\n        logits.copy_(torch.where(mask, logits.mean(), logits))\n```" in by_rule["AWP105"]
    # Its rewrite would replace the line of the other suggestion too, so it is shown as a diff.
    assert "suggestion" not in by_rule["AWP102"] and "```diff\n" in by_rule["AWP102"]
    assert "answer (app.py:11) → generate (srv/decode.py:10)" in by_rule["AWP602"]
    assert hub.summary().count("\n| AWP") == 3
    assert "### awp-lint: 3 new findings\n" in hub.summary()
    assert f"/acme/server/blob/{hub.head}/srv/model.py#L11" in hub.summary()


def test_the_whole_life(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hub.push(world.commit(FAULTY))
    bot()
    hub.writes()

    # One is fixed, the others move by 40 lines.
    moved = {"srv/decode.py": "# moved\n" * 40 + FAULTY["srv/decode.py"], "srv/model.py": MODEL}
    hub.push(world.commit(moved))
    assert bot() == 0
    (fixed,) = [c for c in hub.review_comments if "state=fixed" in c["body"]]
    (summary,) = [c for c in hub.comments if "summary" in c["body"]]
    check = hub.checks[-1]["id"]
    assert hub.writes() == [
        f"PATCH /pulls/comments/{fixed['id']}",
        f"PATCH /issues/comments/{summary['id']}",
        "POST /check-runs",
        f"PATCH /check-runs/{check}",
        f"PATCH /check-runs/{check}",
    ]
    assert len(hub.review_comments) == 3 and len(hub.open_comments()) == 2
    assert fixed["body"].split("\n")[1] == f"~~**AWP602**~~ Fixed: not found at {hub.head[:12]}."
    assert "suggestion" not in fixed["body"] and hub.resolved == {fixed["id"]: True}
    assert "2 new findings, 1 fixed" in hub.summary()

    # A person with write access ignores one, in its thread.
    (thread,) = [c for c in hub.review_comments if "rule=AWP102" in c["body"]]
    hub.say("dev", "/awp ignore AWP102 the loop must stop here", reply_to=thread["id"])
    assert bot() == 0
    assert "state=ignored" in thread["body"] and "`dev` says the loop must stop here" in thread["body"]
    assert "1 new finding, 1 fixed, 1 ignored" in hub.summary() and hub.resolved[thread["id"]]
    hub.writes()

    # The author rewrites history; nothing is said twice, and what comes back is opened again.
    git(world.origin, "reset", "-q", "--hard", world.base)
    hub.push(world.commit(FAULTY, "once more"))
    assert bot() == 0
    assert len(hub.review_comments) == 4  # three of ours and the answer
    assert "state=open" in fixed["body"] and hub.resolved[fixed["id"]] is False
    assert "2 new findings, 1 ignored" in hub.summary()
    hub.writes()

    # Everything is fixed, and the change is merged.
    hub.push(world.commit({"srv/decode.py": DECODE, "srv/model.py": MODEL}))
    assert bot() == 0
    assert hub.open_comments() == [] and "### awp-lint: 0 new findings, 3 fixed" in hub.summary()
    assert hub.checks[-1]["conclusion"] == "success"


def test_twenty_runs_say_nothing_twice(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hub.page = 2  # so that comments come on several pages
    hub.push(world.commit(FAULTY))
    bot()
    state = (str(hub.review_comments), str(hub.comments), str(hub.checks))
    hub.writes()
    for _ in range(19):
        assert bot() == 0
    assert hub.writes() == []
    assert (str(hub.review_comments), str(hub.comments), str(hub.checks)) == state


@pytest.mark.parametrize("killed_at", range(1, 6))
def test_killed_in_the_middle_and_run_again(
    hub: FakeGitHub, world: World, bot: Bot, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    hub.push(world.commit(FAULTY))

    # The process dies before its next write: what it sent until then is all there is.
    from github.Requester import Requester

    plain = Requester.requestJsonAndCheck
    sent = [0]

    def until(self: Requester, verb: str, *more: object, **named: object) -> object:
        if verb != "GET":
            sent[0] += 1
            if sent[0] > killed_at:
                raise KeyboardInterrupt
        return plain(self, verb, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Requester, "requestJsonAndCheck", until)
    bot()
    monkeypatch.setattr(Requester, "requestJsonAndCheck", plain)
    assert bot() == 0
    assert len(hub.review_comments) == 3 and len(hub.comments) == 1
    assert len(hub.checks) == 1 and len(hub.checks[0]["annotations"]) == 3
    assert hub.checks[0]["status"] == "completed"


def test_a_repetition_made_by_two_runs_at_once_is_taken_back(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hub.push(world.commit(FAULTY))
    bot()
    for rows in (hub.review_comments, hub.comments):
        rows.extend([{**row, "id": row["id"] + 5000} for row in list(rows)])
    assert bot() == 0
    assert len(hub.review_comments) == 3 and len(hub.comments) == 1


def test_nothing_to_say_is_not_said(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hub.push(world.commit({"README.md": "more words\n", "srv/bad.py": "def (:\n"}))
    assert bot("--no-check") == 0
    assert hub.writes() == []


def test_the_level_that_fails(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hub.push(world.commit(FAULTY))
    assert [bot("--fail-on", level) for level in ("never", "high", "confirmed", "medium", "low")] == [0, 0, 0, 1, 1]
    assert hub.checks[-1]["conclusion"] == "failure"


def test_at_most_so_many_comments_over_the_whole_life(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hub.push(world.commit(FAULTY))
    bot("--max-comments", "2")
    assert len(hub.review_comments) == 2 and hub.summary().count("\n| AWP") == 3
    bot("--max-comments", "2")
    assert len(hub.review_comments) == 2
    bot("--max-comments", "3")
    assert len(hub.review_comments) == 3


def test_lines_that_the_change_made_hot_stand_in_the_summary(hub: FakeGitHub, world: World, bot: Bot) -> None:
    cold = (
        "import torch\n\n\ndef pick(logits: torch.Tensor) -> torch.Tensor:\n"
        "    if (logits < 0).any():\n        logits = logits + 1\n    return logits\n"
    )
    git(world.origin, "checkout", "-q", "main")
    world.base = world.commit({"srv/pick.py": cold}, "a function that nobody calls")
    git(world.origin, "checkout", "-q", "-B", "change")
    git(world.clone, "fetch", "-q", "origin")
    hot = DECODE.replace("from srv.model", "from srv.pick import pick\nfrom srv.model").replace(
        "        logits = model(logits)\n", "        logits = pick(model(logits))\n"
    )
    hub.push(world.commit({"srv/decode.py": hot}))
    bot()
    assert hub.review_comments == []
    assert "On lines that this change leaves alone, but makes run, or run more often (1)" in hub.summary()
    assert "`srv/pick.py:5`" in hub.summary()


def test_settings_and_baseline_are_those_of_the_merge_base(hub: FakeGitHub, world: World, bot: Bot) -> None:
    off = {
        "pyproject.toml": '[tool.awp-lint]\nignore = ["AWP"]\nexclude = ["srv"]\n',
        ".gitignore": "*\n",
        "awp-lint.toml": 'ignore = ["AWP"]\n',
        ".awp-lint-baseline.json": '{"schema": "awp-lint-baseline/1", "findings": []}',
    }
    for name, text in {**off, **FAULTY}.items():
        (world.origin / name).write_text(text)
    git(world.origin, "add", "-f", ".")
    hub.push(world.commit({}))
    bot()
    assert len(hub.open_comments()) == 3


def test_the_baseline_of_the_settings(hub: FakeGitHub, world: World, bot: Bot) -> None:
    git(world.origin, "checkout", "-q", "main")
    settings = BASE["pyproject.toml"] + 'baseline = "ci/known.json"\n'
    world.base = world.commit({"pyproject.toml": settings, "ci/known.json": "{}"}, "a baseline")
    git(world.origin, "checkout", "-q", "-B", "change")
    hub.push(world.commit(FAULTY))
    assert bot() == 2, "an empty object is no baseline"
    git(world.origin, "checkout", "-q", "main")
    known = '{"schema": "awp-lint-baseline/1", "findings": []}'
    world.base = world.commit({"ci/known.json": known}, "a better one")
    git(world.origin, "checkout", "-q", "-B", "change")
    hub.push(world.commit(FAULTY))
    assert bot() == 0 and len(hub.review_comments) == 3


def test_comments_in_the_code_that_silence_are_counted(hub: FakeGitHub, world: World, bot: Bot) -> None:
    silent = FAULTY["srv/model.py"].replace(".to(ids.device)", ".to(ids.device)  # awp: ignore[AWP602] small")
    hub.push(world.commit({**FAULTY, "srv/model.py": silent}))
    bot()
    assert len(hub.review_comments) == 2
    assert "1 more silenced by comments in the code that this change adds" in hub.summary()


def test_what_is_silenced_in_the_code_later_is_said_to_be(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hub.push(world.commit(FAULTY))
    bot()
    silent = FAULTY["srv/model.py"].replace(".to(ids.device)", ".to(ids.device)  # awp: ignore[AWP602] small")
    hub.push(world.commit({"srv/model.py": silent}))
    bot()
    (told,) = [c["body"] for c in hub.review_comments if "state=ignored" in c["body"]]
    assert "Ignored: silenced by a comment in the code." in told and "fixed" not in hub.summary()


def test_a_file_renamed_on_the_way_is_not_commented_again(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hub.push(world.commit(FAULTY))
    bot()
    (thread,) = [c for c in hub.review_comments if "rule=AWP102" in c["body"]]
    hub.say("dev", "/awp ignore AWP102 it must stop here", reply_to=thread["id"])
    bot()
    moved = {"srv/decode.py": None, "srv/decoding.py": FAULTY["srv/decode.py"]}
    app = BASE["app.py"].replace("srv.decode", "srv.decoding")
    hub.push(world.commit({**moved, "app.py": app}))
    hub.writes()
    bot()
    assert not [row for row in hub.writes() if "/pulls/" in row]
    assert "2 new findings, 1 ignored" in hub.summary() and "`srv/decoding.py:12`" in hub.summary()
    hub.push(world.commit({"srv/decoding.py": DECODE}))
    bot()
    assert "1 new finding, 2 fixed" in hub.summary() and len(hub.open_comments()) == 1


def test_a_host_that_names_no_commit(
    hub: FakeGitHub, world: World, bot: Bot, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.push("--upload-pack=touch${IFS}no")
    assert bot() == 2
    assert "which is none" in capsys.readouterr().err


def test_a_dry_run_only_reads(hub: FakeGitHub, world: World, bot: Bot, capsys: pytest.CaptureFixture[str]) -> None:
    hub.push(world.commit(FAULTY))
    assert bot("--dry-run") == 0
    assert hub.writes() == []
    assert "would comment at srv/model.py:11" in capsys.readouterr().out


def test_a_workflows_token_may_not_ask_who_it_is(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hub.me = None
    hub.push(world.commit(FAULTY))
    bot()
    hub.writes()
    bot()
    assert hub.writes() == []


def test_markers_of_others_are_not_believed(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hub.push(world.commit(FAULTY))
    bot()
    forged = [{**c, "id": c["id"] + 9000, "user": {"login": "guest"}} for c in hub.review_comments]
    hub.review_comments[:] = forged
    hub.comments[:] = [{"id": 1, "user": {"login": "guest"}, "body": hub.summary()}]
    bot()
    assert len([c for c in hub.review_comments if c["user"]["login"] == "awp-bot"]) == 3
    assert len(hub.comments) == 2


@pytest.mark.parametrize(
    ("author", "text", "words"),
    [
        ("guest", "/awp ignore AWP602 please", "it takes write access"),
        ("stranger", "/awp ignore AWP602 please", "it takes write access"),
        ("dev", "/awp ignore AWP602", "it needs a reason"),
        ("dev", "> /awp ignore AWP602 quoted", ""),
        ("dev", "see /awp ignore AWP602 in a sentence", ""),
    ],
)
def test_commands_that_are_not_followed(
    hub: FakeGitHub, world: World, bot: Bot, author: str, text: str, words: str
) -> None:
    hub.push(world.commit(FAULTY))
    hub.say(author, text)
    bot()
    assert len(hub.open_comments()) == 3
    assert words in hub.summary() and ("not followed" in hub.summary()) is bool(words)


def test_a_command_outside_a_thread_is_for_the_whole_change(hub: FakeGitHub, world: World, bot: Bot) -> None:
    hub.push(world.commit(FAULTY))
    number = hub.say("owner", "Thanks!\n/awp ignore awp602 - the table is @small <b>\nbye")
    bot()
    assert len(hub.open_comments()) == 2
    assert "`owner` says the table is @\u200bsmall &lt;b&gt;" in hub.summary()
    hub.comments[:] = [c for c in hub.comments if c["id"] != number]
    bot()
    assert len(hub.open_comments()) == 3


def test_a_lost_answer(hub: FakeGitHub, world: World, bot: Bot) -> None:
    """A review whose answer is lost has been made: it is not made again."""
    hub.push(world.commit(FAULTY))
    hub.faults = [Fault("POST", ".*/reviews", 502, after=True), Fault("POST", ".*/issues/7/comments", 502, after=True)]
    assert bot() == 0
    assert len(hub.review_comments) == 3 and len(hub.comments) == 1 and len(hub.reviews) == 1
