"""What a run says and does when nothing of use comes from the model: every kind of bad answer, by the command line.

    python benchmarks/llm/bad_input.py

A scripted server on this machine gives each kind of answer to every question. In each case findings and exit code are
held against those of a run without ``--llm``, and the one line that the report has of it is printed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "advice"))

from fake_llm import FakeLlm, Reply, error, fake_llm, streamed  # noqa: E402

from awp_lint.detector.advice.settings import KEY  # noqa: E402
from awp_lint.detector.cli import main as awp_lint  # noqa: E402

_SCAN = [".", "--confidence", "low", "--quiet", "--no-cache", "--format", "json", "--output", "report.json"]
_GOOD = '{"verdict": "unsure", "claims": []}'

ANSWERS = {
    "key refused": error(401, "invalid api key"),
    "model not found": error(404, "the model `m` does not exist"),
    "429, for ever": error(429, "slow down", retry_after="0.01"),
    "500": error(500, "boom"),
    "503 with a page": Reply(status=503, raw=b"<html>\n\nbusy</html>"),
    "a page, no API": Reply(raw=b"<html><body>hello</body></html>"),
    "answer cut off": Reply(_GOOD, cut=True),
    "stream cut off": Reply(events=streamed(_GOOD).events[:-3]),
    "error within a stream": Reply(events=[{"choices": []}, {"error": {"message": "out of memory"}}]),
    "invalid JSON": Reply('{"verdict": '),
    "another schema": Reply('{"answer": 42}'),
    "refusal": Reply(None, refusal="I cannot help with that"),
    "context too long": error(400, "maximum context length is 512 tokens, you asked for 2048"),
    "empty answer": Reply(""),
    "cut at its longest": Reply('{"verdict": "uns', finish="length"),
    "10 MB": Reply("x" * 10_000_000),
    "10 MB, streamed": streamed("x" * 10_000_000, size=1000),
    "no end": Reply(_GOOD, endless=0.0),
    "silence": Reply(_GOOD, delay=60.0),
}


def scan(*more: str) -> tuple[int, dict[str, Any]]:
    """Exit code and report."""
    Path("report.json").unlink(missing_ok=True)
    with contextlib.redirect_stderr(io.StringIO()):
        code = awp_lint([*_SCAN, *more])
    return code, json.loads(Path("report.json").read_text())


def row(name: str, llm: FakeLlm, without: tuple[int, dict[str, Any]], *more: str) -> bool:
    """Print what happened; whether all is as without a model, and told in one line."""
    llm.requests.clear()
    code, report = scan("--llm", "--llm-model", "m", *more)
    notes = [note for note in report["summary"]["notes"] if note not in without[1]["summary"]["notes"]]
    same = code == without[0] and report["findings"] == without[1]["findings"]
    told = [note for note in notes if note.startswith("language model")]
    good = same and len(told) == 1 and "\n" not in told[0]
    words = told[0].replace(llm.url, "URL") if told else "NOTHING"
    print(
        f"{name:<22} {'as without' if same else 'DIFFERENT':<11} exit {code}  {len(llm.requests):>3} requests  {words}"
    )
    return good


def main() -> int:
    for name in (KEY, "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as folder, fake_llm() as llm:
        shutil.copy(ROOT / "benchmarks" / "llm" / "sampler.py", folder)
        (Path(folder) / "pyproject.toml").write_text("[tool.awp-lint.llm]\ntimeout = 2\n")
        os.environ["AWP_LINT_CACHE_DIR"] = str(Path(folder) / "cache")
        os.chdir(folder)
        without = scan()
        print(f"without a model: {len(without[1]['findings'])} findings, exit {without[0]}")
        good = [
            row("no key", llm, without),
            row("wrong address", llm, without, "--llm-base-url", "http://127.0.0.1:1/v1"),
        ]
        for name, reply in ANSWERS.items():
            llm.answers(reply)
            good.append(row(name, llm, without, "--llm-base-url", llm.url))
        print(f"{sum(good)} of {len(good)} as without a model, and told in one line")
        os.chdir(ROOT)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
