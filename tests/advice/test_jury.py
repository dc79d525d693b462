from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import world

from awp_lint.detector.advice.jury import apply, may_be_judged, rule_on
from awp_lint.detector.advice.subject import Subject, Subjects
from awp_lint.detector.advice.votes import About, Claim, Opinion, Vote, vote_of
from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Confidence, Evidence, Finding, RootCause, Span, Verdict
from awp_lint.detector.project.source import Source

REAL, FALSE, UNSURE = Opinion.REAL, Opinion.FALSE_ALARM, Opinion.UNSURE


def vote(opinion: Opinion) -> Vote:
    about = {REAL: About.ON_DEVICE, FALSE: About.NEEDED, UNSURE: About.OTHER}[opinion]
    return Vote("m", opinion, (Claim(about, 1, "x", "because"),))


def finding(confidence: Confidence = Confidence.MEDIUM, **more: Any) -> Finding:
    values: dict[str, Any] = {
        "id": "1",
        "rule": "AWP101",
        "name": "device-read",
        "path": "app.py",
        "span": Span(world.LINE, 16, world.LINE, 42),
        "function": "denoise",
        "message": "it waits",
        "why": ("the value",),
        "root_cause": RootCause.RUNTIME,
        "frequency": "request×step",
        "confidence": confidence,
        **more,
    }
    return Finding(**values)


@pytest.mark.parametrize(
    ("votes", "after"),
    [
        ((FALSE, FALSE, REAL), Confidence.LOW),
        ((REAL, REAL, FALSE), Confidence.HIGH),
        ((FALSE, FALSE, FALSE), Confidence.LOW),
        ((FALSE, REAL, UNSURE), Confidence.MEDIUM),
        ((FALSE, UNSURE, UNSURE), Confidence.MEDIUM),
        ((FALSE,), Confidence.MEDIUM),  # two of three did not answer
        ((FALSE, FALSE), Confidence.LOW),
        ((), Confidence.MEDIUM),
    ],
)
def test_most_of_all_jurors_move_a_finding_by_one_level(votes: tuple[Opinion, ...], after: Confidence) -> None:
    assert rule_on(Confidence.MEDIUM, [vote(o) for o in votes], 3).after is after


def test_levels_end() -> None:
    assert rule_on(Confidence.LOW, [vote(FALSE)] * 3, 3).after is Confidence.LOW
    assert rule_on(Confidence.LOW, [vote(REAL)] * 3, 3).after is Confidence.MEDIUM
    assert rule_on(Confidence.HIGH, [vote(FALSE)] * 3, 3).after is Confidence.HIGH


def test_disagreement_is_shown() -> None:
    told = apply(finding(), rule_on(Confidence.MEDIUM, [vote(FALSE), vote(REAL), vote(FALSE)], 4)).why
    assert told[0] == "the value"
    assert told[1] == ("language model, 4 votes: 1 real, 2 false alarm, 1 without an answer; confidence stays medium")
    assert [line.split(":")[0] for line in told[2:]] == ["language model, real", "language model, false alarm"]


MEASURED = [Verdict.CONFIRMED, Verdict.PRESENT_BUT_FREE, Verdict.REFUTED]


@pytest.mark.parametrize(
    "one",
    [
        finding(Confidence.HIGH),
        finding(suppressed="known"),
        finding(origin="dependency"),
        *(finding(evidence=Evidence(verdict, "measured")) for verdict in MEASURED),
    ],
)
def test_what_is_sure_or_measured_is_left_alone(one: Finding) -> None:
    assert not may_be_judged(one)
    assert apply(one, rule_on(one.confidence, [vote(FALSE)] * 3, 3)) == one


@pytest.mark.parametrize(("jurors", "wrong"), [(1, 0.3), (3, 0.3), (5, 0.3), (5, 0.1), (7, 0.4)])
def test_the_jury_is_as_good_as_the_mathematics_says(jurors: int, wrong: float) -> None:
    """Every pattern of independent jurors who err with the same chance, weighted by that chance."""

    def lowered(errors: tuple[bool, ...], truth: Opinion) -> bool:
        other = FALSE if truth is REAL else REAL
        votes = [vote(other if error else truth) for error in errors]
        return rule_on(Confidence.MEDIUM, votes, jurors).after is Confidence.LOW

    false_kept = true_kept = 0.0
    for errors in itertools.product((False, True), repeat=jurors):
        chance = math.prod(wrong if error else 1 - wrong for error in errors)
        false_kept += 0.0 if lowered(errors, FALSE) else chance
        true_kept += 0.0 if lowered(errors, REAL) else chance
    majority = sum(
        math.comb(jurors, k) * wrong**k * (1 - wrong) ** (jurors - k) for k in range(jurors // 2 + 1, jurors + 1)
    )
    assert false_kept == pytest.approx(majority)
    assert true_kept == pytest.approx(1 - majority)
    before = 0.4  # 40 of 100 findings are real
    precision = before * true_kept / (before * true_kept + (1 - before) * false_kept)
    expected = before * (1 - majority) / (before * (1 - majority) + (1 - before) * majority)
    assert precision == pytest.approx(expected)


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    folder = world.write(tmp_path_factory.mktemp("project"))
    path = str(folder / "app.py")
    subjects = Subjects([str(folder)], Settings(jobs=1, cache=False), lambda p: Source.decode(p, Path(p).read_bytes()))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        made = subjects.of(finding(path="app.py"))
    assert isinstance(made, Subject), (made, path)
    return made


def claim(about: str, line: int, quote: str) -> dict[str, Any]:
    return {"about": about, "line": line, "quote": quote, "reason": "so\n\x1b[31mit is <b>@all</b> https://a.example/x"}


@pytest.mark.parametrize(
    ("one", "fault"),
    [
        (claim("not_on_device", world.LINE, "latents.abs().max()"), ""),
        (claim("not_on_device", world.LINE, " latents . abs( ) "), ""),
        (claim("not_on_device", 999, "latents"), "not shown"),
        (claim("not_on_device", -1, "latents"), "not shown"),
        (claim("not_on_device", 7, "API_KEY"), "not shown"),
        (claim("not_on_device", world.LINE, "latents.cpu()"), "does not say so"),
        (claim("not_on_device", world.LINE, "the largest"), "does not say so"),  # a comment
        (claim("needed", 29, "a comment of its own"), "does not say so"),
        (claim("needed", 24, "Words to nobody"), "does not say so"),  # a string
        (claim("needed", world.LINE, ""), "cites nothing"),
        (claim("needed", world.LINE, "()"), "cites nothing"),
        (claim("not_inference", world.LINE, "latents.abs()"), "inference mode"),
    ],
)
def test_claims_are_looked_up(subject: Subject, one: dict[str, Any], fault: str) -> None:
    found = vote_of({"verdict": "false_alarm", "claims": [one]}, "m", subject)
    assert fault in found.claims[0].fault and bool(fault) == bool(found.claims[0].fault)
    assert found.opinion is (UNSURE if fault else FALSE)
    assert found.claims[0].reason == "so 31mit is b all /b"  # nothing that a terminal or a page would obey


def test_a_verdict_needs_a_ground_of_its_own_kind(subject: Subject) -> None:
    for claims in ([], [claim("on_device", world.LINE, "latents")]):
        assert vote_of({"verdict": "false_alarm", "claims": claims}, "m", subject).opinion is UNSURE


def test_a_profile_refutes_not_hot(subject: Subject) -> None:
    ran = Evidence(Verdict.UNATTRIBUTABLE, "no device", unit="step", calls=80, calls_per_unit=4.0)
    seen = dataclasses.replace(subject, finding=dataclasses.replace(subject.finding, evidence=ran))
    answer = {"verdict": "false_alarm", "claims": [claim("not_hot", world.LINE, "peak")]}
    (one,) = vote_of(answer, "m", seen).claims
    assert one.fault == "it ran 4 times a step"


PROVEN = """\
import torch
from fastapi import FastAPI

app = FastAPI()


@app.post("/")
@torch.inference_mode()
def answer(request: dict) -> float:
    x = torch.ones(4, device="cuda")
    y = torch.ones(4, device="cpu")
    return x.sum().item() + y.sum().item()
"""


def test_the_semantic_model_refutes_claims_about_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app.py").write_text(PROVEN)
    monkeypatch.chdir(tmp_path)
    subjects = Subjects(["."], Settings(jobs=1, cache=False), lambda p: Source.decode(p, Path(p).read_bytes()))
    made = subjects.of(finding(function="answer", span=Span(12, 12, 12, 26)))
    assert isinstance(made, Subject)
    claims = [
        claim("not_on_device", 12, "x.sum()"),
        claim("on_device", 12, "y.sum()"),
        claim("not_on_device", 12, "y.sum()"),
    ]
    faults = [one.fault for one in vote_of({"verdict": "unsure", "claims": claims}, "m", made).claims]
    assert ["proven to be on the device" in faults[0], "proven to be on the host" in faults[1], faults[2]] == [
        True,
        True,
        "",
    ]
