"""A bot, its repository and its host. Lets the tests of this folder import the helpers beside them."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from awp_lint.detector.bot import github, run
from awp_lint.detector.bot.cli import main
from awp_lint.detector.bot.compare import Comparison, compare
from awp_lint.detector.bot.host import Change
from awp_lint.detector.finding import Evidence

sys.path.insert(0, str(Path(__file__).parent))

from botworld import World
from fake_github import FakeGitHub

TOKEN = "ghp_0123456789secret"

Bot = Callable[..., int]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def hub(httpserver: HTTPServer, world: World, monkeypatch: pytest.MonkeyPatch) -> FakeGitHub:
    for name in ("GITHUB_EVENT_PATH", "GITHUB_STEP_SUMMARY", "GITLAB_CI", "GH_TOKEN", "AWP_LINT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setattr(github, "PAUSE", 0.01)
    return FakeGitHub(httpserver, world)


_compared: dict[object, Comparison] = {}
_open = ExitStack()
atexit.register(_open.close)


@pytest.fixture(autouse=True)
def compared_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two commits are scanned once for all tests: most are about what is said of them, and to whom."""

    @contextmanager
    def remember(
        folder: str, change: Change, paths: Sequence[str], known: str | None, prices: Mapping[str, Evidence]
    ) -> Iterator[Comparison]:
        made = compare(folder, change, paths, known, prices)
        if folder != str(tmp_path / "clone"):
            with made as comparison:
                yield comparison
            return
        name = (change.base, change.head, tuple(paths), known, repr(sorted(prices.items())))
        if name not in _compared:
            _compared[name] = _open.enter_context(made)
        yield _compared[name]

    monkeypatch.setattr(run, "compare", remember)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []
    monkeypatch.setattr(github, "_sleep", waits.append)
    return waits


@pytest.fixture
def bot(hub: FakeGitHub, world: World, slept: list[float]) -> Bot:
    def start(*more: str) -> int:
        words = ["--repo", "acme/server", "--pr", "7", "--base-url", hub.url, "--folder", str(world.clone)]
        return main([*words, *more])

    return start
