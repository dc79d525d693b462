"""Where a number that is no longer read may be a tensor, and where what takes its place is a number again."""

from __future__ import annotations

from pathlib import Path

import pytest

from awp_lint.detector.advice.subject import Subject, Subjects
from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Confidence
from awp_lint.detector.project.source import Source
from awp_lint.detector.scan import scan
from awp_lint.patches.llm.assemble import function_in
from awp_lint.patches.llm.reads import read_faults

HEAD = """\
import torch
from fastapi import FastAPI

app = FastAPI()
model = torch.nn.Linear(4, 4).to("cuda")
TABLE = "abc"


"""

STEPS = """\
@app.post("/")
@torch.inference_mode()
def answer(request: dict) -> list:
    x = torch.ones(4, device="cuda")
    timesteps = torch.linspace(999, 0, 20, device="cuda")
    for t in timesteps:
        weight = 0.0 if t.item() > 900 else 1.0
        x = x - weight * model(x)
    return [x.shape[0]]
"""

SCORES = """\
@app.post("/")
@torch.inference_mode()
def answer(request: dict) -> list:
    other = torch.ones(4)
    found = []
    for _ in range(20):
        logits = model(torch.ones(4, device="cuda"))
        scores = torch.log_softmax(logits.float().cpu(), dim=-1)
        values, tokens = scores.topk(2, dim=-1)
        found.append(tokens.tolist())
    return found
"""


def faults_of(text: str, rule: str, *pairs: tuple[str, str]) -> list[str]:
    Path("app.py").write_text(HEAD + text)
    settings = Settings(select=(rule,), confidence=Confidence.LOW, jobs=1, cache=False)
    finding = scan(["."], settings).findings[0]
    subject = Subjects(["."], settings, lambda p: Source.decode(p, Path(p).read_bytes())).of(finding)
    assert isinstance(subject, Subject) and subject.node is not None
    patched = HEAD + text
    for old, new in pairs:
        assert old in patched, old
        patched = patched.replace(old, new, 1)
    return read_faults(subject.node, function_in(patched, subject), finding.span, subject.view)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "pairs",
    [
        (("for t in timesteps:", "for t in timesteps.tolist():"), ("t.item() >", "t >")),
        (("for t in timesteps:", "for t, step in zip(timesteps, timesteps.tolist()):"), ("t.item() >", "step >")),
        (
            ("    for t in timesteps:", "    steps = timesteps.tolist()\n    for n, t in enumerate(steps):"),
            ("t.item() >", "t >"),
        ),
        (
            ("for t in timesteps:", "for n, (t, step) in enumerate(zip(timesteps, timesteps.tolist())):"),
            ("t.item() >", "step >"),
        ),
    ],
)
def test_numbers_may_come_from_one_read_of_many(pairs: tuple[tuple[str, str], ...]) -> None:
    assert faults_of(STEPS, "AWP101", *pairs) == []


@pytest.mark.parametrize(
    "pairs",
    [
        (("t.item() >", "t >"),),
        # the read is there, and the number is not what is used
        (("    for t in timesteps:", "    steps = timesteps.tolist()\n    for t in timesteps:"), ("t.item() >", "t >")),
        (("for t in timesteps:", "for t, step in zip(timesteps, timesteps.tolist()):"), ("t.item() >", "t >")),
        (("for t in timesteps:", "for step, t in zip(timesteps, timesteps.tolist()):"), ("t.item() >", "step >")),
        # the name is bound again
        (
            ("for t in timesteps:", "for t in timesteps.tolist():"),
            ("        weight = 0.0 if t.item() >", "        t = x\n        weight = 0.0 if t >"),
        ),
    ],
)
def test_a_tensor_in_the_place_of_a_number_is_no_number(pairs: tuple[tuple[str, str], ...]) -> None:
    assert faults_of(STEPS, "AWP101", *pairs) == ["line 15 may need the number itself, which is a tensor now"]


def test_a_tensor_may_stay_where_it_is_until_it_is_read() -> None:
    stays = (".float().cpu()", ".float()")
    assert faults_of(SCORES, "AWP111", stays) == []
    for old, new in (
        ("scores.topk(2, dim=-1)", "(scores + other).topk(2, dim=-1)"),
        ("scores.topk(2, dim=-1)", "torch.maximum(scores, other).topk(2, dim=-1)"),
        ("tokens.tolist()", "tokens.numpy()"),
        ("tokens.tolist()", "tokens"),
        ("tokens.tolist()", "[TABLE[t] for t in tokens]"),
    ):
        assert faults_of(SCORES.replace(old, new), "AWP111", stays), new
