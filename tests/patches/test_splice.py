from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from awp_lint.detector.finding import Edit
from awp_lint.patches.splice import clashes, splice


def test_edits_apply_in_place_whatever_their_order() -> None:
    text = "a = 1\nb = 2\n"
    assert splice(text, [Edit(10, 11, "20"), Edit(0, 1, "alpha")]) == "alpha = 1\nb = 20\n"


def test_identical_edits_count_once() -> None:
    assert splice("x", [Edit(0, 0, "import a\n"), Edit(0, 0, "import a\n")]) == "import a\nx"


def test_overlap_is_refused() -> None:
    with pytest.raises(ValueError, match="overlapping"):
        splice("abcdef", [Edit(0, 3, ""), Edit(2, 4, "")])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Edit(0, 3, "x"), Edit(3, 4, "y"), False),
        (Edit(0, 3, "x"), Edit(2, 4, "y"), True),
        (Edit(1, 1, "x"), Edit(1, 1, "y"), True),
        (Edit(1, 1, "x"), Edit(1, 1, "x"), False),
        (Edit(0, 4, "x"), Edit(2, 2, "y"), True),
    ],
)
def test_clash(one: Edit, other: Edit, expected: bool) -> None:
    assert clashes([one], [other]) is expected


@given(st.text(max_size=60), st.data())
def test_everything_outside_the_edit_is_kept(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    new = data.draw(st.text(max_size=10))
    result = splice(text, [Edit(start, end, new)])
    assert result.startswith(text[:start]) and result.endswith(text[end:])
    assert len(result) == len(text) - (end - start) + len(new)
