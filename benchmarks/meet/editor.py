"""How long from a key stroke to diagnostics: a real client, the server in a process of its own, unsaved edits.

    python benchmarks/meet/editor.py PATH_TO_PROJECT FILE [KEYSTROKES]

Each stroke changes one line of the file in the buffer. Printed are the first scan (an empty cache), the time from a
stroke to the diagnostics of that very version (the server waits 150 ms for the typing to end, which is in it), the
server's CPU time, which other work on the machine changes less, and its memory.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient


def cpu(client: LanguageClient) -> float:
    """Seconds of CPU that the server has used; nan where the system does not say."""
    path = Path(f"/proc/{client._server.pid}/stat") if client._server is not None else Path("/nowhere")
    if not path.exists():
        return float("nan")
    fields = path.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(root: Path, file: Path, strokes: int) -> None:
    """One session."""
    client = LanguageClient("benchmark", "1")
    news: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def _(params: types.PublishDiagnosticsParams) -> None:
        news.put_nowait(params)

    async def until(version: int) -> types.PublishDiagnosticsParams:
        while True:
            params = await news.get()
            if params.version == version:
                return params

    await client.start_io(sys.executable, "-m", "awp_lint", "--lsp")
    await client.initialize_async(types.InitializeParams(types.ClientCapabilities(), root_uri=root.as_uri()))
    client.initialized(types.InitializedParams())
    text = file.read_text()
    lines = text.split("\n")
    started = time.perf_counter()
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(file.as_uri(), "python", 1, text))
    )
    first = await until(1)
    print(f"file: {len(lines)} lines, {len(first.diagnostics)} diagnostics")
    print(f"opening, nothing cached: {time.perf_counter() - started:.2f} s")
    choice = random.Random(1)
    blanks = [n for n, line in enumerate(lines) if line.startswith("        return ")]
    for what in ("a comment, so that positions move", "code, so that the file's own facts change"):
        times = []
        used = cpu(client)
        for version in range(2, strokes + 2):
            edited = list(lines)
            row = choice.choice(blanks)
            new = f"        # {version}" if what.startswith("a comment") else f"        unused_{version} = {version}"
            edited.insert(row, new)
            started = time.perf_counter()
            number = version + (0 if what.startswith("a comment") else strokes)
            client.text_document_did_change(
                types.DidChangeTextDocumentParams(
                    types.VersionedTextDocumentIdentifier(number, file.as_uri()),
                    [types.TextDocumentContentChangeWholeDocument("\n".join(edited))],
                )
            )
            await until(number)
            times.append(time.perf_counter() - started)
        times.sort()
        print(
            f"{what}: median {1000 * statistics.median(times):.0f} ms, fastest {1000 * times[0]:.0f}, "
            f"slowest {1000 * times[-1]:.0f}, {strokes} strokes; {1000 * (cpu(client) - used) / strokes:.0f} ms of the "
            "server's CPU a stroke"
        )
    server = client._server
    assert server is not None
    status = Path(f"/proc/{server.pid}/status")
    if status.exists():
        rows = dict(line.split(":", 1) for line in status.read_text().splitlines())
        print(f"server: {int(rows['VmHWM'].split()[0]) / 1024:.0f} MB at its peak, {os.cpu_count()} cores")
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        count = int(sys.argv[3]) if len(sys.argv) > 3 else 20
        asyncio.run(measure(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), count))
