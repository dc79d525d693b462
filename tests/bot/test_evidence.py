"""Prices from a file that nobody vouches for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botworld import FAULTY, World
from fake_github import FakeGitHub

from awp_lint.detector.cli import main
from awp_lint.detector.errors import UsageError
from awp_lint.detector.reporting import evidence_file

Bot = Callable[..., int]


@pytest.fixture
def report(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a job that has checked the change out writes, before any run."""
    world.commit(FAULTY)
    monkeypatch.chdir(world.origin)
    out = tmp_path / "profile.json"
    assert main(["--format", "json", "--output", str(out)]) == 1
    data: dict[str, Any] = json.loads(out.read_text())
    return data


def priced(report: dict[str, Any], verdicts: dict[str, str]) -> dict[str, Any]:
    """The report with a verdict for each rule; 3.1 % where it is confirmed."""
    saving = {"ms": 0.8, "pct": 3.1, "low_pct": 2.0, "high_pct": 4.2, "assumption": "the wait goes"}
    for row in report["findings"]:
        verdict = verdicts.get(row["rule"])
        if verdict is not None:
            row["evidence"] = {
                "verdict": verdict, "reason": "as @measured <here>", "scope": "device", "unit": "step", "calls": 400,
                "calls_per_unit": 1.0, "host_ms": 0.9, "blocked_ms": 0.85, "gpu_ms": None, "idle_ms": 0.8,
                "launches": None, "copies": {"h2d_bytes": 0.0, "d2h_bytes": 4.0, "pageable": None},
                "predicted_saving": saving if verdict == "confirmed" else None,
            }  # fmt: skip
    return report


def write(tmp_path: Path, report: dict[str, Any]) -> str:
    path = tmp_path / "evidence.json"
    path.write_text(json.dumps(report))
    return str(path)


def test_prices_reach_comments_and_free_findings_do_not_count(
    hub: FakeGitHub, world: World, bot: Bot, report: dict[str, Any], tmp_path: Path
) -> None:
    hub.push(world.commit({}))
    path = write(tmp_path, priced(report, {"AWP102": "confirmed", "AWP105": "present_but_free"}))
    assert bot("--evidence", path, "--fail-on", "confirmed") == 1
    bodies = [c["body"] for c in hub.review_comments]
    assert len(bodies) == 2 and "rule=AWP102" in bodies[0], "the confirmed one comes first"
    assert "**confirmed: costs 3.1 \\% of a step" in bodies[0].replace("%", "\\%").replace("\\\\%", "\\%")
    assert "0.85 ms blocked, 0.8 ms of GPU idle caused a step · as @\u200bmeasured &lt;here&gt;" in bodies[0]
    assert "Measured, and costs nothing here (1)" in hub.summary()


def test_a_price_that_comes_later_is_written_into_the_comment(
    hub: FakeGitHub, world: World, bot: Bot, report: dict[str, Any], tmp_path: Path
) -> None:
    hub.push(world.commit({}))
    bot()
    before = [c["body"] for c in hub.review_comments]
    bot("--evidence", write(tmp_path, priced(report, {"AWP602": "confirmed"})))
    after = [c["body"] for c in hub.review_comments]
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1 and len(after) == 3
    assert any("costs 3.1" in body and "suggestion" in body for body in after)
    bot()  # without a run the last price stays
    assert [c["body"] for c in hub.review_comments] == after


def test_a_forks_evidence_takes_nothing_away(
    hub: FakeGitHub, world: World, bot: Bot, report: dict[str, Any], tmp_path: Path
) -> None:
    hub.fork = True
    hub.push(world.commit({}))
    bot("--evidence", write(tmp_path, priced(report, {"AWP102": "refuted", "AWP105": "confirmed"})))
    assert len(hub.review_comments) == 3
    (told,) = [c["body"] for c in hub.review_comments if "costs 3.1" in c["body"]]
    assert "figures from the change's own run, not checked" in told


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r.update(schema="other/1"), "not an awp-lint/1 report"),
        (lambda r: r["findings"][0]["evidence"].update(verdict="great"), "not an awp-lint/1 report"),
        (lambda r: r["findings"][0]["evidence"].update(host_ms=1e300), "a figure that cannot be"),
        (lambda r: r.update(findings=r["findings"] * 20), "more than 50 findings"),
        (lambda r: r.update(findings={}), "not an awp-lint report"),
    ],
)
def test_files_that_are_no_evidence(
    report: dict[str, Any], monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], None], words: str
) -> None:
    monkeypatch.setattr(evidence_file, "MAX_FINDINGS", 50)
    data = priced(report, dict.fromkeys(("AWP102", "AWP105", "AWP602"), "confirmed"))
    change(data)
    with pytest.raises(UsageError, match=words):
        evidence_file.parse(json.dumps(data).encode(), "e.json")


@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"findings": [NaN]}', "\xff", '{"a": 1e999}'])
def test_what_is_not_even_json(text: str) -> None:
    with pytest.raises(UsageError, match=r"^e\.json: "):
        evidence_file.parse(text.encode("latin-1"), "e.json")


def test_an_endless_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    with path.open("wb") as stream:
        stream.truncate(evidence_file.MAX_BYTES + 1)
    with pytest.raises(UsageError, match="larger than 32 MB"):
        evidence_file.read(str(path))
