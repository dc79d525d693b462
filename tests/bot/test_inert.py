"""Text from outside comes out inert, judged by a Markdown renderer of the same family as the hosts' (CommonMark)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from awp_lint.detector.bot.inert import clip, code, fence, is_plain, one_line, prose, visible

HOSTILE = [
    "@everyone and @acme/team",
    "#12 acme/server#12 !34 ~bug %1 $5 &6 GH-1",
    "<img src=x onerror=alert(1)> <script>alert(1)</script> <!-- awp-lint/1 summary -->",
    "![x](https://evil.example/x.png) [click](javascript:alert(1))",
    "https://evil.example www.evil.example ftp://x",
    "``` ` `` unbalanced ` ticks `@x`",
    "/close\n/merge",
    "| a | b |",
    "~~**_x_**~~ # title",
    "\x1b[31mred\x1b[0m \x1b]8;;http://evil\x07link\x1b]8;;\x07",
    "a\u202eb\u2066c\u200d",
    "dead beef 885a091bd9fb885a091bd9fb885a091bd9fb",
]


def rendered(text: str) -> str:
    """As a host renders it: CommonMark with raw HTML, tables, strike-through and bare addresses made links."""
    return str(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text))


def check(html: str) -> None:
    outside = re.sub(r"<code.*?</code>", "`", html, flags=re.DOTALL)  # what stood beside it does not stand together
    assert set(re.findall(r"<(/?[a-z!]\w*)", outside, re.IGNORECASE)) <= {"p", "/p"}, html
    plain = re.sub(r"<[^>]+>", "", outside)
    assert not re.search(r"(?<![\w`])[@#!~%$&][A-Za-z0-9]", plain.replace("&lt;", "").replace("&gt;", "")
                         .replace("&amp;", "").replace("&quot;", "")), html  # fmt: skip
    assert "://" not in plain and "www." not in plain, html
    assert not re.search(r"\b[0-9a-f]{40}\b", plain), html


@pytest.mark.parametrize("text", HOSTILE)
def test_prose_mentions_links_and_commands_nothing(text: str) -> None:
    check(rendered(prose(text)))
    assert not prose(text).lstrip().startswith("/"), "a line of it would be a quick action"


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.sampled_from("`~*_[]()<>!@#/\\|-a1 \n\x1b:&;.w"), max_size=40))
def test_prose_of_anything(text: str) -> None:
    check(rendered(prose(text)))
    assert not prose(text).lstrip().startswith("/"), "a line of it would be a quick action"


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.sampled_from("`~<a@ \n\\|"), min_size=1, max_size=30))
def test_code_spans_and_fences_cannot_be_left(text: str) -> None:
    span = code(text)
    if span:
        html = rendered(f"x {span} y")
        assert html.startswith("<p>x <code>") and html.endswith("</code> y</p>\n"), (span, html)
        assert html.count("<code>") == 1
    block = rendered(fence(text, "diff") + "\n\nend")
    assert block.count("<pre>") == 1 and block.endswith("</pre>\n<p>end</p>\n")


def test_a_table_cell_is_not_ended() -> None:
    html = rendered(f"| a | b |\n|---|---|\n| {prose('x | y `p|q`')} | {code('m | n')} |\n")
    assert html.count("<td>") == 2


def test_what_is_not_visible_is_taken_out() -> None:
    assert visible("\x1b[31mred\x1b[0m\x07") == "red\ufffd"
    assert visible("a\u202eb\ud800") == "ab\ufffd"
    assert one_line("a\r\n b\t c" + "d" * 900, 10) == "a b cdddd…"
    assert not is_plain("a\u202eb") and is_plain("a\n\tb ünï")


def test_a_long_body_is_cut_at_a_line_and_closed() -> None:
    body = "start\n<details>\n<summary>s</summary>\n\n````diff\n" + "+x\n" * 5000
    cut = clip(body, 1000, "*Cut.*")
    assert len(cut) <= 1000 and cut.endswith("\n````\n\n</details>\n\n*Cut.*\n")
    assert clip("short", 1000, "n") == "short"
