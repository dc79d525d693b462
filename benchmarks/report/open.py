"""What the HTML page of a large run costs: seconds to make, bytes, and milliseconds until a browser has drawn it.

    python benchmarks/report/open.py
    python benchmarks/report/open.py --events 3000000 --shots FOLDER

The run is a synthetic trace slice (see ../profile/trace_size.py), once cut into steps and once without any, where every
event lies in the shown stretch. The browser is a headless Chromium; it says itself when its last chart was drawn, in ms
since the page was asked for. With --shots it also takes pictures, light and dark.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "profile"))

from measure import save, spread, table
from trace_size import BASE, KERNELS_PER_STEP, write

from awp_lint.detector.finding import Confidence, Event, Finding, Mark, MarkKind, RootCause, Span
from awp_lint.detector.profiling.run import analyse
from awp_lint.detector.profiling.session import MarkRecords, PlannedMark, ProcessSession, Session, Window, WindowKind
from awp_lint.detector.reporting.html import page
from awp_lint.detector.reporting.json_report import as_dict
from awp_lint.detector.reporting.report import Report

STEP_US = 25.0 * KERNELS_PER_STEP


def session(path: Path, steps: int, cut: bool) -> tuple[Session, Finding]:
    """A traced window over the whole file, with one marked statement a step, and a baseline."""
    mark = Mark(MarkKind.STATEMENT, 1, 0, 1, 9, "decode", 1, Event.WAIT)
    finding = Finding("f1", "AWP101", "device-read", "/app/x.py", Span(1, 1, 1, 10), "decode", "reads", (),
                      RootCause.RUNTIME, "token", Confidence.HIGH, mark)  # fmt: skip
    records = MarkRecords()
    for step in range(steps):
        for share, opens in ((0.9, True), (0.9999, False)):
            records.time_ns.append(BASE + int((step + share) * STEP_US * 1000))
            records.thread.append(77)
            records.mark.append(0)
            records.opens.append(opens)
    times = tuple(BASE + int(step * STEP_US * 1000) for step in range(steps + 1))
    ticks = times if cut else ()
    later = tuple(t + 10**12 for t in times)
    windows = [Window(WindowKind.TRACE, times[0], times[-1], ticks, str(path))]
    if cut:
        windows.append(Window(WindowKind.BASELINE, later[0], later[-1], later))
    planned = PlannedMark(0, finding.id, finding.path, "x", mark)
    process = ProcessSession(77, 1, (), "3.12", "2.13", True, (), None, "monitoring", (planned,), {0: BASE},
                             frozenset((0,)), {}, tuple(windows), records)  # fmt: skip
    return Session("", ("python", "server.py"), 0, BASE, BASE, (process,)), finding


def opened(target: Path, repeat: int) -> list[float]:
    """Ms until the page was drawn, by the page's own clock."""
    found = []
    for _ in range(repeat):
        run = subprocess.run([*chromium(target), "--dump-dom"], capture_output=True, text=True, check=True, timeout=300)
        ready = re.search(r'data-ready="(\d+)"', run.stdout)
        if ready is None:
            raise RuntimeError("the page was not drawn")
        found.append(float(ready[1]))
    return found


def chromium(target: Path) -> list[str]:
    return ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,6000",
            target.as_uri()]  # fmt: skip


def shots(target: Path, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for scheme, number in (("light", 1), ("dark", 0)):
        picture = folder / f"{name}-{scheme}.png"
        more = [f"--blink-settings=preferredColorScheme={number}", f"--screenshot={picture}"]
        subprocess.run([*chromium(target), *more], capture_output=True, check=True, timeout=300)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--shots", type=Path, help="also take pictures there")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    options = parser.parse_args()
    if shutil.which("chromium") is None:
        print("chromium is missing (Debian: apt-get install chromium)", file=sys.stderr)
        return 1
    rows = [["", "analysis s", "page s", "KiB", "events drawn", "opened after ms (min to max)"]]
    figures: dict[str, Any] = {"events": options.events}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        steps = write(path, options.events)
        for name, cut in (("in steps", True), ("without steps", False)):
            begun = time.perf_counter()
            run, finding = session(path, steps, cut)
            profile = analyse(run, [finding]).profile
            analysed = time.perf_counter()
            text = page.render(as_dict(Report((finding,), profile=profile)), lambda path, cell: None)
            made = time.perf_counter()
            target = Path(folder) / "report.html"
            target.write_text(text, encoding="utf-8")
            drawn = spread(opened(target, options.repeat))
            timeline = profile["picture"]["timeline"]
            figures[name] = {
                "analysis_s": analysed - begun, "page_s": made - analysed, "bytes": len(text.encode()),
                "shown": timeline["events"], "drawn": timeline["drawn"], "open_ms": drawn,
            }  # fmt: skip
            rows.append([name, f"{analysed - begun:.1f}", f"{made - analysed:.2f}", f"{len(text.encode()) / 1024:.0f}",
                         f"{timeline['drawn']} of {timeline['events']}",
                         f"{drawn['median']:.0f} ({drawn['min']:.0f} to {drawn['max']:.0f})"])  # fmt: skip
            if options.shots is not None:
                shots(target, options.shots, name.replace(" ", "-"))
    text = f"{options.events} events in one trace slice\n{table(rows)}"
    print(text)
    if options.save:
        save("report-open", figures, text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
