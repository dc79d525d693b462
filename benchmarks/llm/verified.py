"""Right patches of a model, on their way through the gates and the A/B run: which are taken, and what they save.

    python benchmarks/llm/verified.py [--size gpu] [--budget 30] [--only chat]

Apps of ``corpus/apps`` and ``benchmarks/llm/sampler.py`` are run as they are, by
``awp-lint --llm --verify --profile``, with a server in this process in the place of a model: it answers each question
for a patch with a rewrite that a person wrote down here and holds to be right. Rewrites of our rules' own are withheld
first, or nobody would be asked for most of these findings; the table says for which. What the gates then say of a
patch, whether its results are equal and what it saves is the tool's own finding. No network, no model.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "advice"))

from fake_llm import Reply, fake_llm  # noqa: E402  (the scripted server of the tests)

from awp_lint.detector.advice import run as advice  # noqa: E402
from awp_lint.detector.cli import main as awp_lint  # noqa: E402
from awp_lint.detector.finding import Finding  # noqa: E402
from awp_lint.patches.plan import without_edits  # noqa: E402

_RULES = "AWP101,AWP102,AWP103,AWP105,AWP111"
_DEFAULT = ("chat", "transcribe", "sampler")


@dataclass(frozen=True)
class Program:
    """A program, its arguments by size, and right rewrites: (rule, function) → old and new texts of the function."""

    name: str
    source: Path
    arguments: dict[str, tuple[str, ...]]
    answers: dict[tuple[str, str], tuple[tuple[str, str], ...]]


PROGRAMS = (
    Program(
        "chat",
        ROOT / "corpus" / "apps" / "chat",
        {"cpu": ("--requests", "24"), "gpu": ("--size", "gpu", "--requests", "48")},
        {
            ("AWP111", "top_logprobs"): ((".float().cpu()", ".float()"),),
            ("AWP105", "generate"): (
                ("tokens[finished] = self.pad", "tokens.copy_(torch.where(finished, self.pad, tokens))"),
            ),
        },
    ),
    Program(
        "transcribe",
        ROOT / "corpus" / "apps" / "transcribe",
        {"cpu": ("--requests", "400"), "gpu": ("--size", "gpu", "--requests", "600")},
        {
            ("AWP103", "greedy"): (("groupby(letters)", "groupby(letters.tolist())"),),
            ("AWP102", "speech_segments"): (
                (
                    "    quiet = 0\n    for",
                    "    quiet = 0\n    energies = energy.tolist()\n    bound = level.item()\n    for",
                ),
                ("if energy[index] > level:", "if energies[index] > bound:"),
            ),
        },
    ),
    Program(
        "images",
        ROOT / "corpus" / "apps" / "images",
        {"cpu": ("--requests", "24"), "gpu": ("--size", "gpu", "--requests", "16")},
        {
            ("AWP101", "__call__"): (
                (
                    "for number, timestep in enumerate(scheduler.timesteps):",
                    "for number, (timestep, value) in "
                    "enumerate(zip(scheduler.timesteps, scheduler.timesteps.tolist())):",
                ),
                ("timestep.item() > LATE", "value > LATE"),
            )
        },
    ),
    Program(
        "sampler",
        ROOT / "benchmarks" / "llm" / "sampler.py",
        {"cpu": ("--rounds", "600"), "gpu": ("--size", "gpu", "--rounds", "1500")},
        {
            ("AWP101", "denoise"): ((".abs().max().item()", ".abs().max()"),),
            ("AWP101", "refine"): (
                ("for t in timesteps:", "for t in timesteps.tolist():"),
                ("t.item() > 900", "t > 900"),
            ),
            ("AWP102", "restore"): (
                (
                    """\
        if (latents.abs() > limit).any():
            latents = latents.clamp(-limit, limit)
""",
                    """\
        outside = (latents.abs() > limit).any()
        latents = torch.where(outside, latents.clamp(-limit, limit), latents)
""",
                ),
            ),
        },
    ),
)  # fmt: skip


@dataclass
class Script:
    """Answers from a program's list, jurors without an opinion. ``unknown``: questions that have no answer here."""

    program: Program
    asked: set[tuple[str, str]] = field(default_factory=set)

    def __call__(self, body: dict[str, Any]) -> Reply:
        """The reply to one request."""
        if body["response_format"]["json_schema"]["name"] == "vote":
            return Reply('{"verdict": "unsure", "claims": []}')
        data = json.loads(body["messages"][1]["content"])
        place = (data["finding"]["rule"], data["finding"]["function"].rpartition(".")[2])
        again = place in self.asked  # a repair round: there is no better answer
        self.asked.add(place)
        code: str = data["function"]
        for old, new in self.program.answers.get(place, ()):
            if code.count(old) != 1 and not again:
                raise SystemExit(f"{self.program.name}, {place}: the function is not what this script knows")
            code = code.replace(old, new)
        return Reply(json.dumps({"replacement": code}))


class _Withholding(advice.Adviser):
    """An adviser that does not know the rules' own rewrites. ``withheld``: the findings that have one."""

    withheld: set[str] = set()  # noqa: RUF012  (one a process)
    answers: set[tuple[str, str]] = set()  # noqa: RUF012

    def write(self, ranked: Sequence[Finding]) -> list[Finding]:
        """As ever, less those rewrites; findings without an answer here are nobody's question."""
        bare = []
        for finding in ranked:
            fix = finding.fix
            if fix is not None and fix.edits:
                self.withheld.add(finding.id)
                finding = dataclasses.replace(finding, fix=without_edits(fix))
            bare.append(finding)
        known = [f for f in bare if (f.rule, f.function.rpartition(".")[2]) in self.answers]
        written = {f.id: f for f in super().write(known)}
        return [written.get(f.id, f) for f in bare]


def run(program: Program, size: str, budget: float, folder: Path) -> tuple[dict[str, Any], float]:
    """The report of one run, and its seconds."""
    place = folder / program.name
    if program.source.is_dir():
        shutil.copytree(program.source, place, ignore=shutil.ignore_patterns("__pycache__"))
        script = "main.py"
    else:
        place.mkdir()
        shutil.copy(program.source, place)
        script = program.source.name
    os.chdir(place)
    began = time.monotonic()
    _Withholding.withheld, _Withholding.answers = set(), set(program.answers)
    advice.Adviser = _Withholding  # type: ignore[misc]
    with fake_llm() as server, _output_apart():
        server.script = Script(program)
        awp_lint(
            [
                ".", "--no-cache", "--exit-zero", "--select", _RULES, "--format", "json", "--output", "report.json",
                "--llm", "--llm-model", "scripted", "--llm-base-url", server.url, "--llm-votes", "1",
                "--llm-patches", str(len(program.answers)), "--verify", "--budget", str(budget),
                "--profile", sys.executable, script, *program.arguments[size],
            ]
        )  # fmt: skip
    report: dict[str, Any] = json.loads(Path("report.json").read_text())
    return report, time.monotonic() - began


@contextlib.contextmanager
def _output_apart() -> Iterator[None]:
    """The program's own output goes nowhere: this script's is a table."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def rows(program: Program, report: dict[str, Any]) -> list[str]:
    """A line a question."""
    lines = []
    for finding in report["findings"]:
        place = (finding["rule"], finding["function"].rpartition(".")[2])
        if place not in program.answers:
            continue
        fix, proof, evidence = finding["fix"] or {}, finding["verification"], finding["evidence"] or {}
        taken = "taken" if "language model" in fix.get("title", "") else "not taken"
        own = "withheld" if finding["id"] in _Withholding.withheld else "none"
        verdict = evidence.get("verdict", "not run")
        head = f"{program.name:<10} {finding['rule']} {finding['function']:<22} {verdict:<18} {own:<9} {taken:<10}"
        if proof is None:
            why = next((why for why in finding["why"] if "withdrawn" in why), "")
            lines.append(f"{head} not proven {why}")
            continue
        gain = "" if proof["saving_pct"] is None else (
            f"{proof['saving_pct']:6.1f} % [{proof['low_pct']:.1f}, {proof['high_pct']:.1f}]"
        )  # fmt: skip
        lines.append(f"{head} {proof['verdict']:<13} {gain:<24} {proof['pairs']:>4}  {proof['equality']}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=("cpu", "gpu"), help="default: gpu where torch has CUDA")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of proving a program (default %(default)s)")
    names = [program.name for program in PROGRAMS]
    parser.add_argument("--only", action="append", choices=names, help=f"default: {', '.join(_DEFAULT)}")
    options = parser.parse_args()
    size = options.size or _size()
    print("right patches through the model's path: gates, equality, A/B; a scripted server in the place of a model")
    print(f"Python {platform.python_version()}, {_device()}, size {size}, {options.budget:g} s of proving each")
    print(f"{'program':<10} {'rule':<6} {'function':<22} {'profile':<18} {'own fix':<9} {'gates':<10} "
          f"{'proof':<13} {'saving':<24} rounds  equality")  # fmt: skip
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as name:
        for program in PROGRAMS:
            if program.name in (options.only or _DEFAULT):
                report, seconds = run(program, size, options.budget, Path(name))
                print("\n".join(rows(program, report)))
                for note in report["summary"]["notes"]:
                    if "language model" in note or "together" in note:
                        print(f"         {note}")
                print(f"         {seconds:.0f} s in all", flush=True)
                os.chdir(home)


def _device() -> str:
    code = """
import torch
print("torch", torch.__version__, torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU")
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _size() -> str:
    return "cpu" if _device().endswith(" CPU") else "gpu"


if __name__ == "__main__":
    main()
