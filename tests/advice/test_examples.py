from __future__ import annotations

from pathlib import Path

from awp_lint.detector.advice.examples import Example, Examples


def test_examples_stay_with_their_project_and_are_few(tmp_path: Path) -> None:
    here, there = str(tmp_path / "a"), str(tmp_path / "b")
    good = Example.of("AWP101", "def f(): 1", "def f(): 2", ())
    bad = Example.of("AWP101", "def g(): 1", "def g(): 2", ("it drops `max`",))
    Examples(here).keep([good, bad, Example.of("AWP102", "def h(): 1", "def h(): 2", ())])
    held = Examples(here)
    assert held.of("AWP101", "def other(): 1") == [good, bad]
    assert held.of("AWP101", "def f(): 1") == [bad]
    assert bad.as_dict()["outcome"] == "refused: it drops `max`"
    assert Examples(there).of("AWP101", "") == []


def test_a_proof_replaces_what_was_known(tmp_path: Path) -> None:
    Examples(str(tmp_path)).keep([Example("AWP101", "a", "b", ())])
    Examples(str(tmp_path)).keep([Example("AWP101", "a", "b", (), "differs")])
    (found,) = Examples(str(tmp_path)).of("AWP101", "")
    assert found.verdict == "differs" and not found.good


def test_nothing_is_kept_where_nothing_may_be(tmp_path: Path) -> None:
    Examples(str(tmp_path), enabled=False).keep([Example("AWP101", "a", "b", ())])
    assert Examples(str(tmp_path)).of("AWP101", "") == []


def test_a_broken_file_is_learned_anew(tmp_path: Path) -> None:
    Examples(str(tmp_path)).keep([Example("AWP101", "a", "b", ())])
    (file,) = (tmp_path / "cache" / "llm-examples").iterdir()
    for text in ("[", "[1]", '[{"x": 1}]', "{}"):
        file.write_text(text)
        assert Examples(str(tmp_path)).of("AWP101", "") == []
