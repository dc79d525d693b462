"""From what launches left to verdicts: equality decides before time does."""

from __future__ import annotations

from typing import Any

import pytest

from awp_lint.detector.finding import Verification
from awp_lint.detector.finding import VerificationVerdict as V
from awp_lint.detector.verification.outcome import Equality, Series, equality_of, side_effects, verification
from awp_lint.detector.verification.overlay import EditedFunction, FileOverlay, PatchTrial, Touched
from awp_lint.detector.verification.prove import Proof
from awp_lint.detector.verification.words import as_dict, words

TRIAL = PatchTrial("X", (), (FileOverlay("/m.py", "m", b"", b"", Touched((EditedFunction(("f",), 0, (4, 9)),))),))


def _series(saving: float, rounds: int = 60) -> Series:
    series = Series()
    wave = [10.0 + 0.02 * (n % 5) for n in range(rounds)]
    series.add([{"rounds": [[t, t + 0.01 * (n % 3 - 1), t * (1 - saving)] for n, t in enumerate(wave)]}], 1)
    return series


def _part(**entry: Any) -> dict[str, Any]:
    base = {"function": "f", "calls": 40, "compared": 5, "unknown": [], "raised": "", "found": [], "lines": [4, 9]}
    return {"calls": 40, "equality": [{**base, **entry}]}


def _judged(part: dict[str, Any], saving: float = 0.2) -> Verification:
    return verification(TRIAL, equality_of([part], TRIAL), _series(saving), 30.0, "none", "")[0]


def test_faster_and_equal_is_verified() -> None:
    found = _judged(_part())
    assert found.verdict is V.VERIFIED
    assert found.saving_pct == pytest.approx(20.0, abs=0.1)
    assert found.equality == "5 calls compared, equal"
    assert "verified +20" in words(found)
    assert as_dict(found)["verdict"] == "verified"


def test_a_patch_that_differs_is_never_verified_however_fast() -> None:
    found = _judged(_part(found=[["value", "result", "off by 1"]]))
    assert (found.verdict, found.saving_pct) == (V.DIFFERS, None)
    assert found.equality == "f: value of result: off by 1"


def test_a_patch_that_raises_does_not_run() -> None:
    found = _judged(_part(raised="NameError: x", found=[["raises", "the call", "NameError: x"]]))
    assert found.verdict is V.DOES_NOT_RUN


def test_faster_but_not_comparable_is_not_verified() -> None:
    found = _judged(_part(compared=0, unknown=["its inputs reach a socket.socket"], lines=[]))
    assert found.verdict is V.NOT_RESOLVED
    assert "could not be shown" in found.notes[0]
    assert "socket" in found.equality


def test_slower_is_a_regression_and_nothing_is_no_effect() -> None:
    assert _judged(_part(), -0.2).verdict is V.REGRESSION
    assert _judged(_part(), 0.0).verdict is V.NO_EFFECT


def test_code_that_never_ran_is_not_exercised() -> None:
    part = {"calls": 0, "equality": [{**_part()["equality"][0], "calls": 0, "compared": 0, "lines": []}]}
    found = verification(TRIAL, equality_of([part], TRIAL), Series(), 30.0, "none", "")[0]
    assert found.verdict is V.NOT_EXERCISED
    untried = verification(TRIAL, equality_of([], TRIAL), Series(), 30.0, "none", "not tried")[0]
    assert untried.verdict is V.NOT_RESOLVED


def test_new_lines_that_no_comparison_ran_are_listed() -> None:
    assert any("9 of the patched text" in note for note in _judged(_part(lines=[4])).notes)


def test_worse_tails_and_memory_are_told() -> None:
    series = _series(0.2)
    series.kept = {"A": [10.0] * 200, "A2": [10.0] * 200, "B": [8.0] * 390 + [30.0] * 10}
    series.memory = {"A": 1000, "A2": 1000, "B": 1200}
    text = " | ".join(side_effects(series))
    assert "p99" in text
    assert "(worse)" in text
    assert "peak device memory +20.0 % (worse)" in text


def test_only_the_best_is_applied_where_the_patches_do_not_go_together() -> None:
    def good(pct: float) -> Verification:
        return Verification(V.VERIFIED, pct, pct - 1, pct + 1, 40)

    proof = Proof({"a": good(3.0), "b": good(8.0), "c": Verification(V.NO_EFFECT)})
    assert proof.proven == {"a", "b"}
    proof.joint = Verification(V.DIFFERS)
    assert proof.proven == {"b"}
    assert Proof({}, Verification(V.DIFFERS)).proven == frozenset()


def test_equality_known_only_where_something_was_compared() -> None:
    assert Equality().known
    assert not equality_of([_part(compared=0)], TRIAL).known
