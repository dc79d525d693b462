"""The documentation as a site: it builds without a warning, and what it shows is what the program says of itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from awp_lint.detector.bot.cli import build_parser as bot_parser
from awp_lint.detector.options import build_parser
from awp_lint.rules.registry import all_rules

ROOT = Path(__file__).resolve().parents[2]


def words(page: Path) -> str:
    """The text of a page, without its marks."""
    return unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def fetched(page: Path) -> Iterator[str]:
    """What a browser would load for a page beside what a reader clicks."""
    text = page.read_text(encoding="utf-8")
    yield from re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?([^\"'\s>]+)", text)
    for tag in re.findall(r"<link\b[^>]*>", text):
        if not re.search(r"rel=[\"']?(?:canonical|next|prev|edit)\b", tag):
            yield from re.findall(r"href=[\"']?([^\"'\s>]+)", tag)


def test_the_site_builds_and_says_what_the_program_says_of_itself(tmp_path: Path) -> None:
    """One test, since the build takes ten seconds."""
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr  # a broken link ends it

    reference = words(site / "reference" / "command-line.html")
    for parser in (build_parser(), bot_parser()):
        options = [name for action in parser._actions for name in action.option_strings]
        assert len(options) > 10
        assert [name for name in options if name not in reference] == []

    for rule in all_rules():
        assert rule.name in words(site / "rules" / f"{rule.id}.html")

    shown = words(site / "figures" / "apps.html")
    for line in (ROOT / "benchmarks" / "results" / "apps.txt").read_text(encoding="utf-8").splitlines():
        assert line.strip() in shown

    start = (site / "index.html").read_text(encoding="utf-8")  # the README
    assert "Find the lines of PyTorch inference code that waste the accelerator" in start
    assert 'href="verification.html"' in start and 'href="figures/index.html"' in start

    pages = list(site.rglob("*.html"))
    assert len(pages) > 100
    outside = {source for page in pages for source in fetched(page) if re.match(r"(?:https?:)?//", source)}
    assert outside == set()
