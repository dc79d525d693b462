"""Comments that silence findings: where they stand, what they name, and whether they were used."""

from __future__ import annotations

import pytest

from awp_lint.rules.suppressions import Suppressions


def test_trailing_comment_with_reason() -> None:
    found = Suppressions("a()\nb()  # awp: ignore[AWP101] the client needs it\nc()\n")
    assert found.reason(["AWP101"], 2, 2) == "the client needs it"
    assert found.reason(["AWP101"], 1, 1) is None
    assert found.reason(["AWP102"], 2, 2) is None


@pytest.mark.parametrize("line", [2, 3, 4])
def test_anywhere_in_the_statements_lines(line: int) -> None:
    lines = ["x = 1", "y = f(", "    a,", ")"]
    lines[line - 1] += "  # awp: ignore[AWP101]"
    assert Suppressions("\n".join(lines)).reason(["AWP101"], 2, 4) == ""


def test_line_above_reaches_over_other_comments() -> None:
    found = Suppressions("# awp: ignore[AWP101, AWP602] known\n# more\n\na()\nb()\n")
    assert found.reason(["AWP602"], 4, 4) == "known"
    assert found.reason(["AWP602"], 5, 5) is None


def test_block_form() -> None:
    found = Suppressions("a()\n# awp: off[AWP1] all of it\nb()\nc()\n# awp: on\nd()\n")
    assert [found.reason(["AWP105"], n, n) for n in (1, 3, 4, 6)] == [None, "all of it", "all of it", None]


def test_block_form_closes_one_of_two() -> None:
    found = Suppressions("# awp: off[AWP1]\n# awp: off[AWP602]\na()\n# awp: on[AWP1]\nb()\n")
    assert found.reason(["AWP101"], 5, 5) is None
    assert found.reason(["AWP602"], 5, 5) == ""


def test_file_form_holds_above_it_too() -> None:
    assert Suppressions("a()\n# awp: ignore-file[AWP501] reference code\n").reason(["AWP501"], 1, 1) == "reference code"


def test_noqa_with_our_ids_only() -> None:
    found = Suppressions("a()  # noqa: E501, AWP101\nb()  # noqa\nc()  # noqa: F401\n")
    assert found.reason(["AWP101"], 1, 1) == ""
    assert found.reason(["AWP101"], 2, 2) is None
    assert found.reason(["AWP101"], 3, 3) is None
    assert found.unused(["AWP101"]) == []


def test_strings_are_no_comments() -> None:
    assert Suppressions('x = "# awp: ignore[AWP101]"\n').reason(["AWP101"], 1, 1) is None


def test_a_comment_must_name_a_rule() -> None:
    found = Suppressions("a()  # awp: ignore\nb()  # awp: ignore[E501]\n")
    assert [line for line, _ in found.problems] == [1, 2]
    assert found.reason(["AWP101"], 1, 1) is None


def test_any_of_several_rules_and_what_was_not_used() -> None:
    found = Suppressions("a()  # awp: ignore[AWP101, AWP701]\nb()  # awp: ignore[AWP602]\n")
    assert found.reason(["AWP108", "AWP101"], 1, 1) == ""
    assert found.unused(["AWP101", "AWP602"]) == [(2, "AWP602")]
    assert found.unused(["AWP701"]) == [(1, "AWP701")]


def test_a_prefix_is_unused_only_where_all_its_rules_ran() -> None:
    found = Suppressions("a()  # awp: ignore[AWP1]\n")
    assert found.unused(["AWP101"], ["AWP101", "AWP102"]) == []
    assert found.unused(["AWP101", "AWP102"], ["AWP101", "AWP102", "AWP201"]) == [(1, "AWP1")]


def test_comments_of_other_languages() -> None:
    text = 'a\n// awp: ignore[AWP804] known\n"b",\n'
    found = Suppressions(text, {2: "awp: ignore[AWP804] known"})
    assert found.reason(["AWP804"], 3, 3) == "known"
    assert bool(found) and not Suppressions("a\n", {1: "nothing"})
