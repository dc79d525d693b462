"""The language server (``awp-lint --lsp``): diagnostics as code is typed, hover, code actions.

Scans run in one thread beside the loop that talks to the editor. While one runs, further key strokes only note that
another is due, so that the last text wins and nothing queues up.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import itertools
import logging
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from awp_lint import __version__
from awp_lint.detector.editor import answers
from awp_lint.detector.editor.analysis import Analysed, Project, fixed_text, safe
from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Finding, Safety, Span
from awp_lint.detector.project.source import Source

_PAUSE = 0.15  # seconds without a key stroke before a scan
FIX_ALL = "source.fixAll.awp-lint"


class Server(LanguageServer):
    """One editor's connection."""

    def __init__(self) -> None:
        super().__init__("awp-lint", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Incremental)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="awp-lint-scan")
        self._project: Project | None = None
        self._options: dict[str, Any] = {}
        self._known: dict[str, tuple[int | None, Analysed]] = {}  # by uri, with the version of the text
        self._due = asyncio.Event()
        self._typed = 0.0
        self._scanning: asyncio.Task[None] | None = None
        self._busy = asyncio.Lock()

    def configure(self, options: object) -> None:
        """``initializationOptions``: ``profile`` is a report of a profile run whose prices are shown."""
        self._options = options if isinstance(options, dict) else {}

    # scanning

    def touch(self) -> None:
        """Something has changed: scan soon."""
        self._typed = time.monotonic()
        self._due.set()
        if self._scanning is None or self._scanning.done():
            self._scanning = asyncio.create_task(self._scan_when_due())

    async def _scan_when_due(self) -> None:
        while self._due.is_set():
            wait = self._typed + _PAUSE - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
                continue
            self._due.clear()
            await self.scan()

    async def scan(self) -> None:
        """Scan what the editor holds now, and publish."""
        async with self._busy:
            documents = {uri: d for uri, d in self.workspace.text_documents.items() if _path(uri) is not None}
            texts = {os.path.realpath(str(_path(uri))): d.source for uri, d in documents.items()}
            versions = {uri: d.version for uri, d in documents.items()}
            try:
                found = await asyncio.get_running_loop().run_in_executor(self._thread, self._analyse, texts)
            except UsageError as error:  # broken settings: said once a change, until they are mended
                self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"awp-lint: {error}"))
                return
            for uri, document in documents.items():
                analysed = found.get(os.path.realpath(str(_path(uri))))
                if analysed is not None and uri in self.workspace.text_documents:
                    self._known[uri] = (versions[uri], analysed)
                    # Code is broken at every other key stroke: the editor moves what it shows until it is whole again.
                    if analysed.broken is None:
                        self._publish(document, versions[uri], analysed)

    def _analyse(self, texts: dict[str, str]) -> dict[str, Analysed]:
        if self._project is None:
            project = Project(self.workspace.root_path or os.getcwd())
            profile = self._options.get("profile")
            if isinstance(profile, str):
                from awp_lint.detector.reporting import evidence_file

                project.prices = evidence_file.read(os.path.join(project.root, profile))
            self._project = project
        return self._project.analyse(texts)

    def forget_settings(self) -> None:
        """Settings or prices have changed on disk."""
        self._project = None
        self.touch()

    def _publish(self, document: TextDocument, version: int | None, analysed: Analysed) -> None:
        root = self._project.root if self._project is not None else ""
        rows = answers.diagnostics(analysed, _Positions(document, analysed.source.text), root)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri, rows, version))

    def close(self, uri: str) -> None:
        """The editor has closed a file."""
        self._known.pop(uri, None)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    # questions

    async def current(self, uri: str) -> Analysed | None:
        """What is known of the text as it is now: scanned again where the editor has gone on since."""
        version = self.workspace.get_text_document(uri).version
        known = self._known.get(uri)
        if known is None or known[0] != version:
            await self.scan()
            known = self._known.get(uri)
        return known[1] if known is not None and known[0] == version else None

    async def hover(self, uri: str, position: types.Position) -> types.Hover | None:
        """The rule's page, and what the last profile says."""
        analysed = await self.current(uri)
        if analysed is None:
            return None
        at = _Positions(self.workspace.get_text_document(uri), analysed.source.text)
        for finding in analysed.findings:
            span = at.range(finding.span)
            if _inside(position, span):
                text = answers.hover(finding)
                return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), span)
        return None

    async def actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """Rewrites and suppressions at a place, and all safe rewrites at once."""
        uri = params.text_document.uri
        analysed = await self.current(uri)
        if analysed is None or analysed.broken is not None:
            return []
        document = self.workspace.get_text_document(uri)
        at = _Positions(document, analysed.source.text)
        only = params.context.only or []
        found: list[types.CodeAction] = []
        if _wants(only, types.CodeActionKind.QuickFix.value):
            for finding in analysed.findings:
                if not _overlap(params.range, at.range(finding.span)):
                    continue
                diagnostic = answers.diagnostic(finding, at, "")
                if finding.fix is not None and finding.fix.edits:
                    edit = self._edit(document, analysed, [finding], at)
                    if edit is not None:
                        title = answers.action_title(finding)
                        found.append(
                            types.CodeAction(
                                title,
                                types.CodeActionKind.QuickFix,
                                [diagnostic],
                                is_preferred=finding.fix.safety is Safety.SAFE,
                                edit=edit,
                            )
                        )
                line = at.end_of_line(finding.span.end_line)
                comment = answers.ignore_comment(analysed.source, finding)
                if comment is not None:
                    edit = _workspace_edit(document, [types.TextEdit(types.Range(line, line), comment)])
                    title = f"{finding.rule}: ignore here (write down why)"
                    found.append(types.CodeAction(title, types.CodeActionKind.QuickFix, [diagnostic], edit=edit))
        if _wants(only, FIX_ALL):
            fixes = safe(analysed)
            edit = self._edit(document, analysed, fixes, at) if fixes else None
            if edit is not None:
                found.append(types.CodeAction("awp-lint: apply all safe rewrites", FIX_ALL, edit=edit))
        return found

    def _edit(
        self, document: TextDocument, analysed: Analysed, findings: list[Finding], at: _Positions
    ) -> types.WorkspaceEdit | None:
        try:
            after = fixed_text(analysed, findings)
        except (ValueError, SyntaxError):
            return None
        edits = [
            types.TextEdit(types.Range(at.point(start), at.point(end)), text)
            for start, end, text in answers.changes(analysed.source.text, after)
        ]
        return _workspace_edit(document, edits) if edits else None


def _workspace_edit(document: TextDocument, edits: list[types.TextEdit]) -> types.WorkspaceEdit:
    # With its version, so that an editor that has gone on refuses it.
    name = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(name, list(edits))])


class _Positions:
    """From positions in a text, in code points, to those that the editor counts in."""

    def __init__(self, document: TextDocument, text: str) -> None:
        self._codec = document.position_codec
        self._starts = Source(path="", text=text).line_starts
        self._lines = [text[a:b] for a, b in itertools.pairwise([*self._starts, len(text)])]

    def _units(self, row: int, column: int) -> types.Position:
        line = self._lines[row] if row < len(self._lines) else ""
        return types.Position(row, self._codec.client_num_units(line[:column]))

    def range(self, span: Span) -> types.Range:
        """The range of a finding."""
        start = self._units(span.line - 1, span.column - 1)
        return types.Range(start, self._units(span.end_line - 1, span.end_column - 1))

    def point(self, offset: int) -> types.Position:
        """The place of an offset."""
        row = max(bisect.bisect_right(self._starts, offset) - 1, 0)
        return self._units(row, offset - self._starts[row])

    def end_of_line(self, line: int) -> types.Position:
        """Behind the last character of a 1-based line."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return self._units(line - 1, len(text.rstrip("\r\n")))


def _inside(position: types.Position, span: types.Range) -> bool:
    return span.start <= position <= span.end


def _overlap(one: types.Range, other: types.Range) -> bool:
    return one.start.line <= other.end.line and other.start.line <= one.end.line


def _wants(only: Sequence[types.CodeActionKind | str], kind: str) -> bool:
    names = [str(getattr(k, "value", k)) for k in only]
    return not names or any(kind == name or kind.startswith(f"{name}.") for name in names)


def _path(uri: str) -> str | None:
    path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return path if path and path.endswith((".py", ".pyi")) else None


def build() -> Server:
    """A server with its features, not yet connected."""
    server = Server()

    @server.feature(types.INITIALIZE)
    def _(ls: Server, params: types.InitializeParams) -> None:
        ls.configure(params.initialization_options)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def _(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
        ls.touch()

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def _(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
        ls.touch()

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def _(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
        ls.touch()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def _(ls: Server, params: types.DidChangeWatchedFilesParams) -> None:
        ls.forget_settings()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def _(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
        ls.close(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def _(ls: Server, params: types.HoverParams) -> types.Hover | None:
        return await ls.hover(params.text_document.uri, params.position)

    kinds: list[types.CodeActionKind | str] = [types.CodeActionKind.QuickFix, FIX_ALL]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    async def _(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
        return await ls.actions(params)

    return server


def serve() -> int:
    """Talk to an editor on standard input and output until it ends the session."""
    logging.getLogger("pygls").setLevel(logging.ERROR)
    with contextlib.suppress(KeyboardInterrupt):
        build().start_io()
    return 0
