"""A bot, its repository and its host. Lets the tests of this folder import the helpers beside them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from awp_lint.detector.bot import github
from awp_lint.detector.bot.cli import main

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


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []
    monkeypatch.setattr(github, "_sleep", waits.append)
    return waits


@pytest.fixture
def bot(hub: FakeGitHub, world: World, slept: list[float]) -> Bot:
    def run(*more: str) -> int:
        words = ["--repo", "acme/server", "--pr", "7", "--base-url", hub.url, "--folder", str(world.clone)]
        return main([*words, *more])

    return run
