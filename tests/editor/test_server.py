"""The language server as an editor meets it: a client in another process, over standard input and output."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

MODEL = """\
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        s = "ü😀"; positions = torch.arange(ids.shape[1]).to(ids.device)
        return self.out(positions.float() + ids.float())
"""

APP = """\
import torch
from fastapi import FastAPI
from model import Head

app = FastAPI()
model = Head().to("cuda")


@torch.inference_mode()
def generate(model: Head, ids: torch.Tensor, steps: int) -> torch.Tensor:
    for _ in range(steps):
        ids = model(ids)
    return ids


@app.post("/")
def answer(request):
    return generate(model, request, 8)
"""


class Editor:
    """A client that keeps what is published."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.client = LanguageClient("test", "1")
        self.published: dict[str, types.PublishDiagnosticsParams] = {}
        self.messages: list[str] = []
        self.news = asyncio.Event()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _(params: types.PublishDiagnosticsParams) -> None:
            self.published[params.uri] = params
            self.news.set()

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def _(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)
            self.news.set()

    async def start(self, options: Any = None) -> None:
        await self.client.start_io(sys.executable, "-m", "awp_lint", "--lsp")
        await self.client.initialize_async(
            types.InitializeParams(
                types.ClientCapabilities(), root_uri=self.root.as_uri(), initialization_options=options
            )
        )
        self.client.initialized(types.InitializedParams())

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

    def open(self, name: str) -> None:
        text = (self.root / name).read_text()
        item = types.TextDocumentItem(self.uri(name), "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def type(self, name: str, version: int, text: str) -> None:
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version, self.uri(name)),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def diagnostics(self, name: str, version: int) -> list[types.Diagnostic]:
        """Those of a version of a file, once they come."""
        async with asyncio.timeout(60) if sys.version_info >= (3, 11) else _NoLimit():
            while True:
                params = self.published.get(self.uri(name))
                if params is not None and params.version == version:
                    return list(params.diagnostics)
                self.news.clear()
                await self.news.wait()

    async def actions(self, name: str, line: int, kind: str | None = None) -> list[types.CodeAction]:
        place = types.Range(types.Position(line, 0), types.Position(line, 0))
        context = types.CodeActionContext([], only=[kind] if kind else None)
        found = await self.client.text_document_code_action_async(
            types.CodeActionParams(types.TextDocumentIdentifier(self.uri(name)), place, context)
        )
        return [action for action in found or [] if isinstance(action, types.CodeAction)]


class _NoLimit:
    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, *_: object) -> None:
        return None


def applied(text: str, action: types.CodeAction) -> str:
    """A text with an action's edits, positions in UTF-16 units as the protocol has it."""
    assert action.edit is not None and action.edit.document_changes is not None
    (change,) = action.edit.document_changes
    assert isinstance(change, types.TextDocumentEdit)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode("utf-16-le")) // 2)
    units = text.encode("utf-16-le")
    for edit in sorted(change.edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        start, end = (2 * (starts[p.line] + p.character) for p in (edit.range.start, edit.range.end))
        units = units[:start] + edit.new_text.encode("utf-16-le") + units[end:]  # type: ignore[union-attr]
    return units.decode("utf-16-le")


@pytest.fixture
def talk(tmp_path: Path) -> Callable[..., None]:
    (tmp_path / "pyproject.toml").write_text('[tool.awp-lint]\nselect = ["AWP602", "AWP102"]\n')
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "app.py").write_text(APP)

    def run(script: Callable[[Editor], Awaitable[None]], options: Any = None) -> None:
        async def main() -> None:
            editor = Editor(tmp_path)
            await editor.start(options)
            try:
                await script(editor)
            finally:
                await editor.stop()

        asyncio.run(main())

    return run


def test_diagnostics_follow_the_unsaved_text(talk: Callable[..., None]) -> None:
    async def script(editor: Editor) -> None:
        editor.open("model.py")
        (found,) = await editor.diagnostics("model.py", 1)
        assert found.code == "AWP602" and found.source == "awp-lint"
        assert found.severity is types.DiagnosticSeverity.Information
        line = MODEL.split("\n")[10]
        start = len(line[: line.index("torch.arange")].encode("utf-16-le")) // 2  # the emoji counts twice
        assert (found.range.start.line, found.range.start.character) == (10, start)
        assert found.related_information is not None
        assert found.related_information[0].location.uri == editor.uri("app.py")

        editor.type("model.py", 2, "# one more line\n" + MODEL)
        (found,) = await editor.diagnostics("model.py", 2)
        assert found.range.start.line == 11
        editor.type("model.py", 3, MODEL + "\ndef (\n")
        assert await editor.actions("model.py", 10) == []  # answered after the scan of this text
        assert editor.published[editor.uri("model.py")].version == 2, "what was shown stays while the code is broken"
        editor.type("model.py", 4, MODEL.replace(").to(ids.device)", ", device=ids.device)"))
        assert await editor.diagnostics("model.py", 4) == []
        assert (editor.root / "model.py").read_text() == MODEL

    talk(script)


def test_what_another_buffer_does_is_seen(talk: Callable[..., None]) -> None:
    async def script(editor: Editor) -> None:
        editor.open("model.py")
        assert len(await editor.diagnostics("model.py", 1)) == 1
        editor.open("app.py")
        await editor.diagnostics("app.py", 1)
        cold = APP.replace("        ids = model(ids)\n", "        pass\n")
        editor.published.clear()
        editor.type("app.py", 2, cold)
        await editor.diagnostics("app.py", 2)
        (params,) = [p for p in editor.published.values() if p.uri == editor.uri("model.py")]
        assert [d.related_information for d in params.diagnostics] in ([], [None])

    talk(script)


def test_many_key_strokes_and_only_the_last_text_counts(talk: Callable[..., None]) -> None:
    async def script(editor: Editor) -> None:
        editor.open("model.py")
        await editor.diagnostics("model.py", 1)
        for version in range(2, 60):
            editor.type("model.py", version, "#\n" * version + MODEL)
        (found,) = await editor.diagnostics("model.py", 59)
        assert found.range.start.line == 10 + 59

    talk(script)


def test_code_actions(talk: Callable[..., None]) -> None:
    async def script(editor: Editor) -> None:
        editor.open("model.py")
        await editor.diagnostics("model.py", 1)
        fix, ignore, everything = await editor.actions("model.py", 10)
        assert fix.title.startswith("AWP602: make it on the device") and fix.is_preferred
        fixed = MODEL.replace(
            "torch.arange(ids.shape[1]).to(ids.device)", "torch.arange(ids.shape[1], device=ids.device)"
        )
        assert applied(MODEL, fix) == fixed
        assert fix.diagnostics is not None and fix.diagnostics[0].code == "AWP602"
        assert applied(MODEL, ignore).split("\n")[10].endswith("(ids.device)  # awp: ignore[AWP602] ")
        assert everything.kind == "source.fixAll.awp-lint" and applied(MODEL, everything) == fixed
        assert await editor.actions("model.py", 3, "quickfix") == []
        assert [a.kind for a in await editor.actions("model.py", 0, "source.fixAll")] == ["source.fixAll.awp-lint"]
        # Asked right after a key stroke, the answer is of the new text.
        moved = "#\n" + MODEL
        editor.type("model.py", 2, moved)
        fix = (await editor.actions("model.py", 11))[0]
        assert applied(moved, fix) == "#\n" + fixed
        editor.type("model.py", 3, "def (")
        assert await editor.actions("model.py", 0) == []

    talk(script)


def test_hover_gives_the_page_and_the_price(talk: Callable[..., None], tmp_path: Path) -> None:
    from awp_lint.detector.cli import main

    report = tmp_path / "profile.json"
    assert main([str(tmp_path), "--format", "json", "--output", str(report)]) == 1
    data = json.loads(report.read_text())
    saving = {"ms": 0.4, "pct": 1.6, "low_pct": 1.1, "high_pct": 2.0, "assumption": "a"}
    for row in data["findings"]:
        row["evidence"] = {
            "verdict": "confirmed", "reason": "waits", "scope": "device", "unit": "step", "calls": 40,
            "calls_per_unit": 1.0, "host_ms": 1.0, "blocked_ms": 1.0, "gpu_ms": None, "idle_ms": 0.4, "launches": None,
            "copies": {"h2d_bytes": 0.0, "d2h_bytes": 0.0, "pageable": None}, "predicted_saving": saving,
        }  # fmt: skip
    report.write_text(json.dumps(data))

    async def script(editor: Editor) -> None:
        editor.open("model.py")
        (found,) = await editor.diagnostics("model.py", 1)
        assert found.severity is types.DiagnosticSeverity.Warning and "saves 1.6 % [1.1, 2.0]" in found.message
        hover = await editor.client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(editor.uri("model.py")), types.Position(10, 40))
        )
        assert hover is not None and isinstance(hover.contents, types.MarkupContent)
        assert "**Last profile: saves 1.6 % [1.1, 2.0]**" in hover.contents.value
        assert "create-then-move" in hover.contents.value

    talk(script, {"profile": "profile.json"})


def test_broken_settings_are_said_and_mended(talk: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.awp-lint]\nselct = 1\n")

    async def script(editor: Editor) -> None:
        editor.open("model.py")
        while not editor.messages:
            editor.news.clear()
            await editor.news.wait()
        assert "unknown setting 'selct'" in editor.messages[0]
        (tmp_path / "pyproject.toml").write_text("[tool.awp-lint]\nselect = ['AWP602']\n")
        uri = editor.uri("pyproject.toml")
        editor.client.workspace_did_change_watched_files(
            types.DidChangeWatchedFilesParams([types.FileEvent(uri, types.FileChangeType.Changed)])
        )
        assert len(await editor.diagnostics("model.py", 1)) == 1

    talk(script)
