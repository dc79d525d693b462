"""The whole against a real model behind an OpenAI-compatible server. No opinion is judged here.

The model is the small one of :mod:`local_llm` where its packages are installed (``make test-llm``), or one of yours
that the environment names by AWP_LINT_TEST_LLM_URL and AWP_LINT_TEST_LLM_MODEL.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import world
from local_llm import MISSING, NAME, LocalLlm, local_llm

from awp_lint.detector.cli import main

URL = os.environ.get("AWP_LINT_TEST_LLM_URL", "")
MODEL = os.environ.get("AWP_LINT_TEST_LLM_MODEL", "")

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        bool(MISSING) and not (URL and MODEL),
        reason=f"needs {', '.join(MISSING)} (make test-llm), or AWP_LINT_TEST_LLM_URL and AWP_LINT_TEST_LLM_MODEL",
    ),
]


@dataclass
class Endpoint:
    """Where the model is; ``local`` is the server of the tests, None where it is yours."""

    url: str
    model: str
    local: LocalLlm | None


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    if URL and MODEL:
        yield Endpoint(URL, MODEL, None)
        return
    with local_llm() as server:
        yield Endpoint(server.url, NAME, server)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: Endpoint) -> Iterator[Path]:
    (tmp_path / "project").mkdir()
    folder = world.write(tmp_path / "project")
    (folder / "pyproject.toml").write_text(world.PROJECT + "[tool.awp-lint.llm]\ntimeout = 400\njobs = 1\n")
    monkeypatch.chdir(folder)
    if endpoint.local is not None:
        endpoint.local.schemas, endpoint.local.most = "held", None
        endpoint.local.served.clear()
    yield folder


def line(endpoint: Endpoint, *more: str) -> list[str]:
    own = [".", "--confidence", "low", "--format", "json", "--output", "report.json", "--llm"]
    where = ["--llm-base-url", endpoint.url, "--llm-model", endpoint.model, "--llm-max-seconds", "600"]
    return [*own, *where, "--llm-votes", "2", *more]


def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("report.json").read_text())
    return found


def notes() -> str:
    return "\n".join(report()["summary"]["notes"])


def calls() -> int:
    """Of the last run, as the report says."""
    (note,) = [note for note in report()["summary"]["notes"] if " answers from " in note]
    return int(note.partition("(")[2].partition(" calls")[0])


def answers() -> int:
    """That the last run could use."""
    (note,) = [note for note in report()["summary"]["notes"] if " answers from " in note]
    return int(note.removeprefix("language model: ").partition(" answers")[0])


def bare(findings: list[dict[str, Any]]) -> list[Any]:
    """What no model may change, whatever it says."""
    return [(f["id"], f["rule"], f["line"], f["message"]) for f in findings]


def test_the_client_of_the_hosted_service_works_with_it(endpoint: Endpoint) -> None:
    import openai

    client = openai.OpenAI(base_url=endpoint.url, api_key="none", max_retries=0)
    assert endpoint.model in [model.id for model in client.models.list().data]
    asked: Any = {"model": endpoint.model, "messages": [{"role": "user", "content": "Say: a b c"}], "max_tokens": 8}
    for _ in range(2):
        whole = client.chat.completions.create(**asked, temperature=0, seed=0)
        pieces = [*client.chat.completions.create(**asked, temperature=0, seed=0, stream=True)]
        text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
        assert text and whole.choices[0].message.content
        assert whole.usage is not None and whole.usage.completion_tokens <= 9


def test_jury_and_patches_end_and_the_second_run_asks_less(endpoint: Endpoint, project: Path) -> None:
    assert main([".", "--confidence", "low", "--format", "json", "--output", "report.json"]) == 1
    without = report()["findings"]
    code = main(line(endpoint, "--llm-max-calls", "6"))
    first = report()
    assert code == 1
    assert bare(first["findings"]) == bare(without)
    assert 1 <= calls() <= 6
    asked, answered = calls(), answers()
    if endpoint.local is not None:
        assert len(endpoint.local.served) == asked and answered >= 2
    assert main(line(endpoint, "--llm-max-calls", "6")) == 1
    assert bare(report()["findings"]) == bare(without)
    if answered:
        assert "kept from earlier runs" in notes() and calls() < asked


@pytest.mark.parametrize("schemas", ["ignored", "refused"])
def test_answers_of_no_form_change_nothing(endpoint: Endpoint, project: Path, schemas: str) -> None:
    if endpoint.local is None:
        pytest.skip("the server is yours")
    endpoint.local.schemas, endpoint.local.most = schemas, 40
    assert main([".", "--confidence", "low", "--format", "json", "--output", "report.json"]) == 1
    without = report()["findings"]
    assert main(line(endpoint, "--llm-max-calls", "6", "--no-cache")) == 1
    assert report()["findings"] == without
    assert "without use: " in notes() and answers() == 0


def test_the_budget_is_kept(endpoint: Endpoint, project: Path) -> None:
    if endpoint.local is not None:
        endpoint.local.most = 20
    assert main(line(endpoint, "--llm-max-calls", "1", "--no-cache")) == 1
    assert calls() == 1 and "--llm-max-calls" in notes()
    if endpoint.local is not None:
        assert len(endpoint.local.served) == 1


def test_a_model_that_is_not_there_is_one_line(endpoint: Endpoint, project: Path) -> None:
    wrong = Endpoint(endpoint.url, "no-such-model", endpoint.local)
    assert main(line(wrong, "--no-cache")) == 1
    assert answers() == 0 and "HTTP 404" in notes() and len(report()["findings"]) == 1


def test_a_context_that_is_too_short_is_one_line(endpoint: Endpoint, project: Path) -> None:
    if endpoint.local is None:
        pytest.skip("the server is yours")
    with local_llm(context=512) as small:
        assert main(line(Endpoint(small.url, NAME, small), "--no-cache")) == 1
    assert "maximum context length is 512 tokens" in notes()
    assert [f["rule"] for f in report()["findings"]] == ["AWP101"]


def test_an_answer_that_takes_too_long_is_given_up(endpoint: Endpoint, project: Path) -> None:
    if endpoint.local is None:
        pytest.skip("the server is yours")
    Path("pyproject.toml").write_text(world.PROJECT + "[tool.awp-lint.llm]\ntimeout = 1\n")
    Path("app.py").write_text(world.APP.replace("Words to nobody", "Others").replace("peak", "highest"))  # a new prompt
    began = time.monotonic()
    assert main(line(endpoint, "--llm-max-calls", "2", "--no-cache")) == 1
    assert time.monotonic() - began < 60
    assert "no answer in 1 s" in notes() or "did not end in time" in notes()


def test_an_interruption_keeps_the_findings(endpoint: Endpoint, project: Path) -> None:
    if endpoint.local is None:
        pytest.skip("the server is yours")
    command, before = [sys.executable, "-m", "awp_lint", *line(endpoint, "--no-cache")], endpoint.local.asked
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while endpoint.local.asked == before and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        _, told = child.communicate(timeout=120)
    finally:
        child.kill()
    assert child.returncode == 1, told
    assert "Traceback" not in told
    assert "ended early: interrupted" in notes()
    assert [f["rule"] for f in report()["findings"]] == ["AWP101"]
