"""Changes of how models are made, proven by instances side by side in copies of the apps of ``corpus/apps``.

    python benchmarks/verify/instances.py [APP…] [--budget 60] [--size cpu]

Tried are the tool's own patches that put a loop's step into a CUDA graph (AWP401: they add a module; on a CPU the
patched program falls back to the loop as it was), and changes of constructors written for this, right and wrong ones.
Each line: the app, the change, the verdict, how it was compared, what was measured, and whether a file changed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from awp_lint.detector import config
from awp_lint.detector.finding import Confidence, Edit, Finding, Fix, RootCause, Safety, Span
from awp_lint.detector.project.source import Source
from awp_lint.detector.scan import scan
from awp_lint.detector.verification.prove import prove
from awp_lint.detector.verification.trials import provable, trial_of
from awp_lint.detector.verification.words import words
from awp_lint.patches.steploop.build import with_step_patches

APPS = Path(__file__).resolve().parents[2] / "corpus" / "apps"


@dataclass(frozen=True)
class Change:
    """A change of a constructor."""

    app: str
    name: str
    file: str
    old: str
    new: str


_VALUES = "self.values = torch.zeros(shape, dtype=dtype).to(device)"
CHANGES = (
    Change("chat", "cache made on the device", "chatserve/cache.py", _VALUES,
           "self.values = torch.zeros(shape, dtype=dtype, device=device)"),
    Change("chat", "cache of another type", "chatserve/cache.py", _VALUES,
           "self.values = torch.zeros(shape, dtype=torch.bfloat16, device=device)"),
    Change("embeddings", "norm without its small constant", "embedserve/encoder.py",
           "self.norm2 = nn.LayerNorm(config.dim)", "self.norm2 = nn.LayerNorm(config.dim, eps=1e-2)"),
    Change("embeddings", "layers made in a list", "embedserve/encoder.py",
           "nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))",
           "nn.ModuleList([EncoderLayer(config) for _ in range(config.layers)])"),
    Change("embeddings", "a layer less", "embedserve/encoder.py", "for _ in range(config.layers))",
           "for _ in range(config.layers - 1))"),
)  # fmt: skip


def read(path: str) -> Source:
    """As the scan reads it."""
    return Source.decode(path, Path(path).read_bytes())


def made(change: Change) -> Finding:
    """A finding in the current folder whose patch is this change."""
    text = Path(change.file).read_text()
    start = text.index(change.old)
    line = text[:start].count("\n") + 1
    fix = Fix(change.name, Safety.SAFE, (Edit(start, start + len(change.old), change.new),))
    return Finding(
        id=change.name, rule="CHANGE", name="change", path=change.file, span=Span(line, 1, line, 2), function="f",
        message="", why=(), root_cause=RootCause.RUNTIME, frequency="step", confidence=Confidence.HIGH, fix=fix,
    )  # fmt: skip


def wanted(app: str, findings: list[Finding]) -> Iterator[tuple[str, Finding]]:
    """What is to be tried, with a name for it."""
    for finding in provable(findings):
        if trial_of([finding], read, finding.rule).route != "none":
            yield f"{finding.rule} {finding.path}:{finding.span.line}", finding
    for change in CHANGES:
        if change.app == app:
            yield change.name, made(change)


def texts(folder: Path) -> dict[str, bytes]:
    """All files, but for Python's caches."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path): path.read_bytes() for path in files}


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("apps", nargs="*", default=["chat", "embeddings"])
    parser.add_argument("--budget", type=float, default=60.0, help="seconds a change (default %(default)s)")
    parser.add_argument("--size", default="cpu")
    parser.add_argument("--requests", default="100000")
    args = parser.parse_args()
    for app in args.apps:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve() / app
            shutil.copytree(APPS / app, folder, ignore=shutil.ignore_patterns("__pycache__", "expert"))
            os.chdir(folder)
            settings = config.Settings()
            result = scan(["."], settings)
            before = texts(folder)
            for title, finding in wanted(app, with_step_patches(result.findings, ["."], settings, [])):
                command = [sys.executable, "main.py", "--size", args.size, "--requests", args.requests]
                began = time.monotonic()
                proof = prove(
                    [finding], result.units, command, {"max_wait": 120.0}, read, args.budget, report=lambda line: None
                )
                (found,) = proof.by_finding.values()
                print(f"{app}: {title}: {words(found)}", flush=True)
                print(
                    f"    {found.pairs} rounds, {proof.summary['launches']} launches, {time.monotonic() - began:.0f} s"
                )
                print("    " + "\n    ".join((found.equality, *found.notes)), flush=True)
            changed = "none" if texts(folder) == before else "SOME"
            print(f"{app}: files that were changed: {changed}", flush=True)
            os.chdir(APPS)


if __name__ == "__main__":
    main()
