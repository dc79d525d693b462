from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fake_llm import FakeLlm, Reply, error, streamed

from awp_lint.detector.advice import client as client_module
from awp_lint.detector.advice.asking import Asker
from awp_lint.detector.advice.budget import Budget
from awp_lint.detector.advice.client import Client, LlmError, Question
from awp_lint.detector.advice.settings import LlmSettings, resolve
from awp_lint.detector.errors import UsageError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["n"],
    "properties": {"n": {"type": "integer"}},
}


def question(sample: int = 0, text: str = "how many?", model: str = "m") -> Question:
    return Question(model, (("system", "s"), ("user", text)), "count", SCHEMA, max_tokens=50, sample=sample)


def settings(llm: FakeLlm, **more: Any) -> LlmSettings:
    return LlmSettings(**{"base_url": llm.url, "models": ("m",), "timeout": 5, "cache": False, **more})


def ask(llm: FakeLlm, **more: Any) -> tuple[dict[str, Any], Budget]:
    chosen = settings(llm, **more)
    budget = Budget(chosen.max_calls, chosen.max_tokens, chosen.max_seconds)
    client = Client(chosen, budget)
    try:
        return client.ask(question()), budget
    finally:
        client.close()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_LONGEST_PAUSE", 0.02)


def test_a_question_is_sent_with_its_schema_and_its_answer_comes_back(llm: FakeLlm) -> None:
    llm.answers(Reply('{"n": 3}'))
    answer, budget = ask(llm, key="secret")
    assert answer == {"n": 3}
    assert llm.keys == ["Bearer secret"]
    (body,) = llm.requests
    assert body["model"] == "m" and body["max_tokens"] == 50
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert (budget.used_calls, budget.used_tokens) == (1, 100)  # what the server says it used


def test_bounds_on_lengths_are_checked_here_and_not_sent(llm: FakeLlm) -> None:
    schema = {
        **SCHEMA,
        "properties": {"n": {"type": "integer"}, "s": {"type": "array", "maxItems": 2, "items": {"maxLength": 3}}},
    }
    one = dataclasses.replace(question(), schema=schema)
    client = Client(settings(llm), Budget(9, 100_000, 60))
    llm.answers(
        Reply('{"n": 1, "s": ["abc", "d"]}'), Reply('{"n": 1, "s": ["abcd"]}'), Reply('{"n": 1, "s": [1, 2, 3]}')
    )
    assert client.ask(one) == {"n": 1, "s": ["abc", "d"]}
    assert "max" not in json.dumps(llm.requests[0]["response_format"])
    for words in ("s/0 .maxLength", "s .maxItems"):
        with pytest.raises(LlmError, match=words):
            client.ask(one)
    client.close()


def test_a_server_that_cannot_hold_an_answer_to_a_schema_is_asked_without(llm: FakeLlm) -> None:
    def script(body: dict[str, Any]) -> Reply:
        return error(400, "failed to parse grammar") if "response_format" in body else Reply('{"n": 1}')

    llm.script = script
    assert ask(llm)[0] == {"n": 1}


def test_answers_come_as_a_stream_where_the_server_can(llm: FakeLlm) -> None:
    llm.answers(streamed('{"n": 3}'))
    answer, budget = ask(llm)
    assert answer == {"n": 3} and budget.used_tokens == 100
    assert llm.requests[0]["stream"] is True and llm.requests[0]["stream_options"] == {"include_usage": True}
    llm.answers(streamed('{"n": 4}', size=1, usage=None))
    answer, budget = ask(llm)
    assert answer == {"n": 4}
    assert 0 < budget.used_tokens <= 2000  # a guess from what was sent
    lines = 'event: x\r\n: keep alive\r\ndata:{"choices":\r\ndata: [{"delta": {"content": "{\\"n\\": 5}"}}]}\r\n\r\n'
    end = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\ndata: {"error": "late"}\n\n'
    llm.answers(Reply(raw=lines.encode() + end, headers={"Content-Type": "text/event-stream"}))
    assert ask(llm)[0] == {"n": 5}


def test_a_server_without_streams_is_asked_without(llm: FakeLlm) -> None:
    def script(body: dict[str, Any]) -> Reply:
        for part in ("stream_options", "stream"):
            if part in body:
                return error(400, f"unknown field {part}")
        return Reply('{"n": 1}')

    llm.script = script
    assert ask(llm)[0] == {"n": 1}
    assert "stream" not in llm.requests[-1]


@pytest.mark.parametrize("content", ['```json\n{"n": 3}\n```', '<think>3? {"n": 4}</think>\n{"n": 3}', ' {"n": 3}\n'])
def test_wrappings_that_servers_without_schemas_add(llm: FakeLlm, content: str) -> None:
    llm.answers(Reply(content))
    assert ask(llm)[0] == {"n": 3}


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply("three"), "no JSON"),
        (Reply('{"n": 3} and more'), "no JSON"),
        (Reply('{"n": NaN}'), "no JSON"),
        (Reply("[" * 100_000), "no JSON"),
        (Reply('{"n": "3"}'), "does not fit the schema at n"),
        (Reply('{"n": 3, "run": "rm"}'), "does not fit the schema"),
        (Reply("[]"), "does not fit the schema"),
        (Reply(""), "an empty answer"),
        (Reply(None), "an empty answer"),
        (Reply(None, refusal="I cannot"), "refused"),
        (Reply('{"n": ', finish="length"), "longer than 50 tokens"),
        (Reply(raw=b'{"choices": []}'), "no chat completion"),
        (Reply(raw=b"[1]"), "no chat completion"),
        (Reply(raw=b"<html>"), "no JSON"),
        (Reply(raw=b'{"choices": [{"mess'), "broken off"),
        (Reply('{"n": 3}', cut=True), "broke off"),
        (Reply(events=streamed('{"n": 3}').events[:-3]), "broke off"),
        (Reply(events=streamed('{"n": 3}').events, cut=True), "broke off"),
        (Reply(events=[b'{"choices": [{"delta']), "broke off within an event"),
        (Reply(events=[]), "holds nothing"),
        (Reply(events=[b"[DONE]"]), "holds nothing"),
        (Reply(events=[{"choices": []}, {"error": {"message": "out of\nmemory"}}]), r"error \(out of memory\)"),
        (Reply(events=[{"choices": [{"delta": {"content": 3}}]}]), "no chat completion"),
        (Reply(events=[{"choices": [3]}]), "no chat completion"),
        (Reply(events=[[1]]), "no chat completion"),
        (streamed("three"), "no JSON"),
        (streamed(""), "an empty answer"),
        (streamed('{"n": ', finish_reason="length"), "longer than 50 tokens"),
        (streamed("", delta={"refusal": "I cannot"}), "refused"),
        (streamed("x" * 100_000, size=1), "more than 8 MB|no JSON"),
        (streamed("x" * 10_000_000, size=1000), "more than 8 MB"),
        (Reply("x" * 10_000_000), "more than 1 MB"),
        (Reply('{"n": 3}', endless=0.0), "more than 1 MB"),
        (error(400, "maximum context length is 10 tokens"), "maximum context length"),
        (error(413, "large"), "too long"),
        (error(429, "slow down", retry_after="0.01"), "HTTP 429"),
        (error(500, "boom"), "HTTP 500"),
        (Reply(status=503, raw=b"\x1b[31m<html>\n\nbusy"), "HTTP 503"),
    ],
)
def test_answers_without_use_are_one_clear_line(llm: FakeLlm, reply: Reply, words: str) -> None:
    llm.answers(reply)
    with pytest.raises(LlmError, match=words) as caught:
        ask(llm)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400 and "\x1b" not in str(caught.value)
    assert not caught.value.final


@pytest.mark.parametrize(("reply", "words"), [(error(401, "bad key"), "401"), (error(404, "no model m"), "no model m")])
def test_what_no_other_question_could_mend_is_final(llm: FakeLlm, reply: Reply, words: str) -> None:
    llm.answers(reply)
    with pytest.raises(LlmError, match=words) as caught:
        ask(llm)
    assert caught.value.final
    assert len(llm.requests) == 1


def test_a_wrong_address_is_final() -> None:
    chosen = LlmSettings(base_url="http://127.0.0.1:1/v1", models=("m",), timeout=2, cache=False)
    client = Client(chosen, Budget(9, 10_000, 9))
    with pytest.raises(LlmError, match="no connection") as caught:
        client.ask(question())
    client.close()
    assert caught.value.final


def test_silence_and_dripping_end_in_time(llm: FakeLlm) -> None:
    for reply in (Reply('{"n": 3}', delay=250), Reply("", endless=0.2)):  # longer than a test may take
        llm.answers(reply)
        with pytest.raises(LlmError, match=r"no answer in|did not end in time"):
            ask(llm, timeout=1)


def test_busy_servers_are_tried_again_and_every_try_counts(llm: FakeLlm) -> None:
    llm.answers(error(429, "wait"), error(502, "gone"), Reply('{"n": 1}'))
    answer, budget = ask(llm)
    assert answer == {"n": 1}
    assert budget.used_calls == len(llm.requests) == 3
    with pytest.raises(LlmError, match="--llm-max-calls"):
        llm.answers(error(429, "wait"))
        ask(llm, max_calls=2)


def test_parts_that_a_server_does_not_know_are_left_out(llm: FakeLlm) -> None:
    def script(body: dict[str, Any]) -> Reply:
        if "response_format" in body:
            return error(400, "response_format is not supported")
        if "max_tokens" in body:
            return error(400, "use max_completion_tokens instead")
        if "temperature" in body:
            return error(400, "temperature does not support 0.0")
        return Reply('{"n": 1}')

    llm.script = script
    assert ask(llm)[0] == {"n": 1}
    assert llm.requests[-1]["max_completion_tokens"] == 50
    assert len(llm.requests) == 4


def test_without_a_key_the_hosted_service_is_not_asked() -> None:
    with pytest.raises(LlmError, match="AWP_LINT_LLM_API_KEY") as caught:
        Client(LlmSettings(models=("m",)), Budget(1, 1000, 1))
    assert caught.value.final


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, llm: FakeLlm) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(LlmError, match=r"awp-lint\[llm\]"):
        Client(settings(llm), Budget(1, 1000, 1))


def test_tokens_are_taken_before_they_are_spent(llm: FakeLlm) -> None:
    llm.answers(Reply('{"n": 1}'))
    size = question().size
    asker = Asker(settings(llm, max_tokens=size + 100, jobs=1))
    answers = asker.ask([question(n) for n in range(5)])
    asker.close()
    assert [isinstance(a, dict) for a in answers] == [True, True, False, False, False]  # 100 are used each time
    assert asker.budget.used_tokens == 200
    assert "--llm-max-tokens" in asker.summary()


def test_a_spent_budget_does_not_break_off_what_is_under_way(llm: FakeLlm) -> None:
    llm.script = lambda body: Reply('{"n": 1}', delay=0.5)
    asker = Asker(settings(llm, max_calls=2, jobs=4))
    answers = asker.ask([question(n) for n in range(6)])
    asker.close()
    assert [isinstance(a, dict) for a in answers].count(True) == 2
    assert len(llm.requests) == 2 and asker.broken == "2 calls are used (--llm-max-calls)"


def test_tokens_that_requests_under_way_give_back_are_waited_for(llm: FakeLlm) -> None:
    llm.script = lambda body: Reply('{"n": 1}', delay=0.1)
    asker = Asker(settings(llm, max_tokens=question().size + 350, jobs=4))
    answers = asker.ask([question(n) for n in range(4)])  # each takes its size and uses 100
    asker.close()
    assert all(isinstance(a, dict) for a in answers) and asker.budget.used_tokens == 400


def test_answers_are_kept_by_content_and_bad_ones_are_not(llm: FakeLlm) -> None:
    llm.answers(Reply("bad"), Reply('{"n": 1}'), Reply('{"n": 2}'))
    chosen = settings(llm, cache=True, jobs=1)
    first = Asker(chosen)
    assert [isinstance(a, dict) for a in first.ask([question(0), question(1)])] == [False, True]
    first.close()
    second = Asker(chosen)
    assert second.ask([question(0), question(1)]) == [{"n": 2}, {"n": 1}]
    second.close()
    assert (second.cached, len(llm.requests)) == (1, 3)
    third = Asker(dataclasses.replace(chosen, cache=False))
    third.ask([question(1)])
    third.close()
    assert len(llm.requests) == 4


def test_an_interruption_keeps_what_is_there(llm: FakeLlm) -> None:
    llm.script = lambda body: Reply('{"n": 1}', delay=0 if body["messages"][1]["content"] == "quick" else 20)

    def report(text: str) -> None:
        raise KeyboardInterrupt

    asker = Asker(settings(llm, timeout=30, jobs=2), report)
    began = time.monotonic()
    answers = asker.ask([question(text="quick"), question(text="slow"), question(text="later")])
    asker.close()
    assert time.monotonic() - began < 10
    assert answers[0] == {"n": 1}
    assert all(isinstance(a, LlmError) for a in answers[1:])
    assert asker.interrupted and "interrupted" in asker.summary()


def options(**more: Any) -> argparse.Namespace:
    base = {"config": None, "isolated": False, "no_cache": False, "llm_model": None, "llm_base_url": None}
    return argparse.Namespace(**{**base, "llm_dry_run": False, **more})


def test_settings_come_from_the_file_and_the_command_line_wins(tmp_path: Path) -> None:
    (tmp_path / "awp-lint.toml").write_text('[llm]\nmodel = ["a", "b"]\nvotes = 5\nmax-calls = 7\n')
    found = resolve(options(llm_votes=1), tmp_path, {"OPENAI_API_KEY": "k"})
    assert (found.models, found.votes, found.max_calls, found.key) == (("a", "b"), 1, 7, "k")
    assert "k'" not in repr(found).replace("models", "")


@pytest.mark.parametrize(
    "line", ['base-url = "http://evil"', 'api-key = "x"', "votes = 99", 'votes = "3"', "nothing = 1"]
)
def test_a_project_cannot_say_where_its_code_goes(tmp_path: Path, line: str) -> None:
    (tmp_path / "awp-lint.toml").write_text(f'[llm]\nmodel = "a"\n{line}\n')
    with pytest.raises(UsageError, match="llm"):
        resolve(options(), tmp_path, {})


def test_a_key_for_one_place_is_not_sent_to_another(tmp_path: Path) -> None:
    keys = {"OPENAI_API_KEY": "theirs"}
    other = options(llm_model=("m",), llm_base_url="http://127.0.0.1:8000/v1")
    assert resolve(other, tmp_path, keys).key is None
    assert resolve(other, tmp_path, {**keys, "AWP_LINT_LLM_API_KEY": "ours"}).key == "ours"


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://a/v1", "http://u:p@a/v1", "http://", "http://a:b/v1"])
def test_addresses_that_are_none(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="--llm-base-url"):
        resolve(options(llm_model=("m",), llm_base_url=url), tmp_path, {})


def test_a_model_has_to_be_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--llm-model"):
        resolve(options(), tmp_path, {})


def test_the_schema_of_an_answer_is_json() -> None:
    assert json.loads(json.dumps(question().payload()))["response_format"]["type"] == "json_schema"
