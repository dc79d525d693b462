"""What kill -9, many runs at once, a full disk, a tree that cannot be written and a clock that jumps leave behind.

    python benchmarks/hardening/kill.py [--fixes 40] [--caches 40] [--together 6]

``--fix`` is killed at random moments on copies of the corpus: every file has to be as it was or as the fix makes it,
with nothing else in the folder but files whose name begins with a point. Scans are killed while they fill a cache: a
scan after that has to give what one without a cache gives. Several scans share a cache: all have to give the same.
With torch at hand the tool is killed while it profiles and proves a small program, which must end its work as if
nothing had happened, its files as they were and the report whole or not there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def command(*words: str) -> list[str]:
    """The tool with these words."""
    return [sys.executable, "-m", "awp_lint", *words]


def environment(cache: Path) -> dict[str, str]:
    """With a cache of its own."""
    return {**os.environ, "AWP_LINT_CACHE_DIR": str(cache), "AWP_LINT_LEDGER": "off"}


def project(folder: Path, rules: int = 8) -> None:
    """A copy of the faults of some rules, a file each."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[tool.awp-lint]\n")
    for rule in sorted((ROOT / "corpus" / "rules").glob("AWP*"))[:rules]:
        for bad in sorted(rule.glob("bad_*.py")):
            shutil.copy(bad, folder / f"{rule.name.lower()}_{bad.name}")


def contents(folder: Path) -> dict[str, bytes]:
    """The project's files; leftovers of ours begin with a point."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.startswith(".")}


def report(folder: Path, cache: Path | None, *words: str) -> str:
    """A digest of what a scan finds."""
    more = ["--no-cache"] if cache is None else []
    env = environment(cache or folder)
    done = subprocess.run(
        command(".", "--format", "json", "--exit-zero", "--confidence", "low", "--jobs", "1", *more, *words),
        cwd=folder, env=env, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"a scan failed: {done.stderr[-2000:]}")
    found = [(f["id"], f["path"], f["line"], f["message"]) for f in json.loads(done.stdout)["findings"]]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def killed(words: list[str], cwd: Path, env: dict[str, str], after: float) -> bool:
    """Start, wait, kill -9 with all its children; whether it was still running."""
    child = subprocess.Popen(
        words, cwd=cwd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        child.wait(after)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return True
    return False


def fixes(scratch: Path, tries: int, chance: random.Random) -> str:
    """``--fix`` killed at random moments."""
    before = contents(scratch / "original")
    shutil.copytree(scratch / "original", scratch / "whole")
    began = time.monotonic()
    words = command(".", "--fix", "--unsafe-fixes", "--quiet", "--exit-zero", "--jobs", "1")
    env = environment(scratch / "cache")
    subprocess.run(words, cwd=scratch / "whole", env=env, check=True, capture_output=True)
    whole = time.monotonic() - began
    allowed: dict[str, set[bytes]] = {name: {data} for name, data in before.items()}
    # What a fix makes of a file in one pass more or less, by running it to its end from each state that is met.
    for name, data in contents(scratch / "whole").items():
        allowed.setdefault(name, set()).add(data)
    seen: Counter[str] = Counter()
    for number in range(tries):
        folder = scratch / f"fix{number}"
        shutil.copytree(scratch / "original", folder)
        began = time.monotonic()
        was_running = killed(words, folder, env, chance.uniform(0.3, 1.0) * whole)
        if not was_running:
            whole = min(whole, time.monotonic() - began)
        after = contents(folder)
        torn = [name for name, data in after.items() if data not in allowed.get(name, set()) and not _parses(data)]
        lost = [name for name in before if name not in after]
        changed = sum(after.get(name) != data for name, data in before.items())
        seen["killed" if was_running else "ended before"] += 1
        seen["torn files"] += len(torn)
        seen["lost files"] += len(lost)
        seen["between all and nothing"] += 0 < changed < sum(1 for n in before if len(allowed[n]) > 1)
        seen["leftovers"] += sum(p.name.startswith(".") and p.name.endswith(".part") for p in folder.iterdir())
        shutil.rmtree(folder)
    return f"--fix, {tries} tries: " + ", ".join(f"{seen[name]} {name}" for name in (
        "killed", "ended before", "between all and nothing", "torn files", "lost files", "leftovers"
    ))  # fmt: skip


def _parses(data: bytes) -> bool:
    import ast

    try:
        ast.parse(data)
    except SyntaxError:
        return False
    return data.endswith(b"\n")


def caches(scratch: Path, tries: int, chance: random.Random) -> str:
    """Scans killed while they fill a cache."""
    folder, cache = scratch / "original", scratch / "cache2"
    truth = report(folder, None)
    began = time.monotonic()
    report(folder, cache)
    whole = time.monotonic() - began
    wrong = running = damaged = 0
    for _ in range(tries):
        shutil.rmtree(cache, ignore_errors=True)
        words = command(".", "--format", "json", "--output", os.devnull, "--confidence", "low", "--jobs", "1")
        began = time.monotonic()
        was_running = killed(words, folder, environment(cache), chance.uniform(0.3, 1.0) * whole)
        running += was_running
        whole = whole if was_running else min(whole, time.monotonic() - began)
        for file in cache.glob("*.sqlite"):
            database = sqlite3.connect(file)
            damaged += database.execute("PRAGMA integrity_check").fetchone()[0] != "ok"
            database.close()
        wrong += report(folder, cache) != truth
    return f"cache writes, {tries} tries: {running} killed, {damaged} damaged files, {wrong} wrong results after it"


def together(scratch: Path, count: int) -> str:
    """Scans that share a cache, started at once, while one of them is killed."""
    folder, cache = scratch / "original", scratch / "cache3"
    truth = report(folder, None)
    words = command(".", "--format", "json", "--exit-zero", "--confidence", "low", "--jobs", "1")
    outs = [scratch / f"out{n}.json" for n in range(count)]
    running = [
        subprocess.Popen([*words, "--output", str(out)], cwd=folder, env=environment(cache), stderr=subprocess.DEVNULL)
        for out in outs
    ]
    time.sleep(1.0)
    running[0].kill()
    codes = [child.wait() for child in running][1:]
    wrong = 0
    for out in outs[1:]:
        found = [(f["id"], f["path"], f["line"], f["message"]) for f in json.loads(out.read_text())["findings"]]
        wrong += hashlib.sha256(json.dumps(found).encode()).hexdigest() != truth
    failed = sum(code != 0 for code in codes)
    return f"{count} runs on one cache, one of them killed: {failed} failed, {wrong} wrong results"


def full_disk(scratch: Path) -> str:
    """No file may grow beyond a few kilobytes: caches, fixes and reports cannot be written."""
    folder = scratch / "small"
    shutil.copytree(scratch / "original", folder)
    before = contents(folder)

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (256, 256))

    said = []
    for words in (("--fix", "--unsafe-fixes"), ("--format", "json", "--output", "report.json"), ("--quiet",)):
        done = subprocess.run(
            command(".", "--jobs", "1", *words), cwd=folder, env=environment(scratch / "cache4"), capture_output=True,
            text=True, preexec_fn=limit,
        )  # fmt: skip
        said.append(f"exit {done.returncode}{' with a traceback' if 'Traceback' in done.stderr else ''}")
    same = contents(folder) == before
    return f"disk full (--fix, --output, cache): {', '.join(said)}; files {'as they were' if same else 'CHANGED'}"


def read_only(scratch: Path) -> str:
    """A tree without write permission; root may write all the same, so what allows it is given up first."""
    folder = scratch / "frozen"
    shutil.copytree(scratch / "original", folder)
    before = contents(folder)
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    words = command(".", "--jobs", "1", "--fix", "--unsafe-fixes")
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            return "read-only tree: not tried, root without setpriv"
        words = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", *words]
    env = environment(Path("/nonexistent/cache"))
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=env)
    folder.chmod(0o755)
    told = sum(
        "not writable" in line or "Permission" in line or "Read-only" in line for line in done.stderr.splitlines()
    )
    trace = " with a traceback" if "Traceback" in done.stderr else ""
    same = contents(folder) == before
    state = "as they were" if same else "CHANGED"
    return f"read-only tree, --fix: exit {done.returncode}{trace}, {told} files told, files {state}"


def clock(scratch: Path) -> str:
    """A cache that was filled when the clock was years ahead, or behind."""
    folder, cache = scratch / "original", scratch / "cache5"
    truth = report(folder, None)
    report(folder, cache)
    wrong = 0
    for used in (0, 2**40, -(2**40)):
        database = sqlite3.connect(next(cache.glob("*.sqlite")))
        with database:
            database.execute("UPDATE entries SET used = ?", (used,))
        database.close()
        for path in folder.iterdir():
            os.utime(path, (max(used, 0) % 2**33, max(used, 0) % 2**33))
        wrong += report(folder, cache) != truth
    return f"clock and file times in 1970, far ahead, before 1970: {wrong} wrong results"


PROGRAM = """
import sys, torch

@torch.inference_mode()
def serve(model, x, steps):
    total = 0.0
    for step in range(steps):
        x = torch.tanh(model(x))
        total += x.mean().item()
    return total

def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Linear(128, 128)
    for request in range(60):
        total = serve(model, torch.ones(4, 128), 200)
    print("done", round(total, 3), flush=True)

if __name__ == "__main__":
    main()
"""


def with_mark(mark: str) -> list[int]:
    """Processes whose environment holds it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def runs(scratch: Path, tries: int, chance: random.Random, *more: str) -> str:
    """The tool alone killed, its program left to itself, at random moments of a run with these options."""
    folder = scratch / f"program{len(more)}"
    temporary = scratch / f"temporary{len(more)}"
    folder.mkdir()
    temporary.mkdir()
    (folder / "main.py").write_text(PROGRAM)
    words = command(".", "--isolated", "--exit-zero", "--format", "json", "--output", "../report.json", *more)
    words += ["--profile", sys.executable, "main.py"]
    env = {**environment(scratch / "cache6"), "TMPDIR": str(temporary)}
    began = time.monotonic()
    first = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
    if first.returncode or "done" not in first.stdout:
        raise SystemExit(f"a run failed: {first.stderr[-2000:]}")
    whole, seen = time.monotonic() - began, Counter[str]()
    for number in range(tries):
        (scratch / "report.json").unlink(missing_ok=True)
        mark = f"KILLED_RUN={os.getpid()}.{len(more)}.{number}"
        name, _, value = mark.partition("=")
        with (scratch / "said").open("w+") as said:
            child = subprocess.Popen(
                words, cwd=folder, env={**env, name: value}, stdout=said, stderr=subprocess.DEVNULL
            )
            try:
                child.wait(chance.uniform(0.05, 1.0) * whole)
                seen["ended before"] += 1
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                seen["killed"] += 1
            last = time.monotonic() + 120 + 4 * whole
            while (left := with_mark(mark)) and time.monotonic() < last:
                time.sleep(0.2)
            for pid in left:
                seen["programs that went on for ever"] += 1
                os.kill(pid, signal.SIGKILL)
            said.seek(0)
            text = said.read()
        seen["with all of the program's output"] += "done" in text
        report_file = scratch / "report.json"
        if report_file.exists():
            try:
                json.loads(report_file.read_text())
            except ValueError:
                seen["torn reports"] += 1
        seen["changed files"] += {p.name for p in folder.iterdir()} != {"main.py"} or (
            (folder / "main.py").read_text() != PROGRAM
        )
    again = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
    names = (
        "killed", "ended before", "with all of the program's output", "programs that went on for ever", "torn reports",
        "changed files",
    )  # fmt: skip
    kept = sum(1 for _ in temporary.iterdir())
    what = " ".join(("--profile", *more[:1]))
    return (
        f"{what}, {tries} tries: " + ", ".join(f"{seen[name]} {name}" for name in names)
        + f", {kept} temporary folders left behind; a run after it: exit {again.returncode}"
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixes", type=int, default=40)
    parser.add_argument("--caches", type=int, default=40)
    parser.add_argument("--together", type=int, default=6)
    parser.add_argument("--runs", type=int, default=20)
    kinds = ("fixes", "caches", "together", "full", "frozen", "clock", "profile", "verify")
    parser.add_argument("--only", choices=kinds, action="append")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    print(f"Python {platform.python_version()}, seed {options.seed}")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        project(scratch / "original")
        for what, run in (
            ("fixes", lambda: fixes(scratch, options.fixes, chance)),
            ("caches", lambda: caches(scratch, options.caches, chance)),
            ("together", lambda: together(scratch, options.together)),
            ("full", lambda: full_disk(scratch)),
            ("frozen", lambda: read_only(scratch)),
            ("clock", lambda: clock(scratch)),
            ("profile", lambda: runs(scratch, options.runs, chance)),
            ("verify", lambda: runs(scratch, options.runs, chance, "--verify", "--budget", "15")),
        ):
            if options.only is None or what in options.only:
                print(run(), flush=True)


if __name__ == "__main__":
    main()
