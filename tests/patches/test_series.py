"""--patch-dir: a patch a finding, each on top of the last, with what a reviewer must know above it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from awp_lint.detector.finding import Confidence, Edit, Finding, Fix, Import, RootCause, Safety, Span
from awp_lint.detector.project.source import Source
from awp_lint.patches.series import series

CODE = '''"""Decoding."""

import torch


class Scheduler:
    def __init__(self, steps: int, device: torch.device) -> None:
        self.timesteps = torch.linspace(999.0, 0.0, steps, device=device)

    def index_of(self, timestep: torch.Tensor) -> int:
        found = (self.timesteps == timestep).nonzero()
        return int(found[0, 0])


class Pipeline:
    def __init__(self, unet: torch.nn.Module) -> None:
        self.unet = unet

    @torch.inference_mode()
    def __call__(self, latents: torch.Tensor, steps: int) -> torch.Tensor:
        scheduler = Scheduler(steps, latents.device)
        for timestep in scheduler.timesteps:
            noise = self.unet(latents, torch.arange(latents.shape[0]).to(latents.device))
            if timestep.item() > 150.0:
                latents = latents - noise * scheduler.index_of(timestep)
        return latents
'''


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    return subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout  # fmt: skip


def lint(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "XDG_CACHE_HOME": str(folder.parent / "cache"), "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "awp_lint", *words], cwd=folder, env=env, capture_output=True, text=True, timeout=100
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "decode.py").write_text(CODE)
    git(folder, "init", "-q")
    git(folder, "add", "decode.py")
    git(folder, "commit", "-q", "-m", "code")
    return folder


def test_git_am_takes_the_series_in_order(project: Path) -> None:
    ran = lint(project, "decode.py", "--patch-dir", "patches", "--unsafe-fixes", "--exit-zero")
    assert ran.returncode == 0, ran.stderr
    assert "patches in patches" in ran.stderr
    names = (project / "patches" / "series").read_text().split()
    assert len(names) >= 3 and names == sorted(names)
    git(project, "am", "-q", *(f"patches/{name}" for name in names))
    after = (project / "decode.py").read_text()
    assert "for timestep, timestep_value in zip(scheduler.timesteps, scheduler.timesteps.tolist()):" in after
    assert "(self.timesteps == timestep).cpu().nonzero()" in after
    assert "torch.arange(latents.shape[0], device=latents.device)" in after
    subjects = git(project, "log", "--format=%s", f"-{len(names)}").splitlines()
    assert all(subject.startswith("AWP") for subject in subjects)


def test_the_series_amounts_to_what_fix_writes(project: Path) -> None:
    lint(project, "decode.py", "--patch-dir", "patches", "--unsafe-fixes")
    names = (project / "patches" / "series").read_text().split()
    git(project, "am", "-q", *(f"patches/{name}" for name in names))
    by_patches = (project / "decode.py").read_text()
    (project / "decode.py").write_text(CODE)
    lint(project, "decode.py", "--fix", "--unsafe-fixes")
    assert (project / "decode.py").read_text() == by_patches


def test_letter_and_patches_say_what_it_is_worth_and_what_must_hold(project: Path) -> None:
    lint(project, "decode.py", "--patch-dir", "patches", "--unsafe-fixes")
    folder = project / "patches"
    letter = (folder / "cover-letter.txt").read_text()
    assert "no time is\nclaimed" in letter
    patches = {name: (folder / name).read_text() for name in (folder / "series").read_text().split()}
    assert all(name in letter for name in patches)
    safe = next(text for name, text in patches.items() if "AWP602" in name)
    assert "Safe: same values bit for bit" in safe and "Not measured" in safe
    assert any("Unsafe: may change timing" in text for text in patches.values())


def test_safe_fixes_only_without_being_asked_and_old_patches_go(project: Path) -> None:
    lint(project, "decode.py", "--patch-dir", "patches", "--unsafe-fixes")
    (project / "patches" / "notes.txt").write_text("mine")
    lint(project, "decode.py", "--patch-dir", "patches")
    names = sorted(path.name for path in (project / "patches").iterdir())
    assert [name[:11] for name in names if name.endswith(".patch")] == ["0001-AWP602"]
    assert "notes.txt" in names
    assert (project / "decode.py").read_text() == CODE, "nothing but the folder is written"


def _finding(rule: str, fix: Fix, line: int = 1) -> Finding:
    return Finding(
        id=f"{rule}-{line}", rule=rule, name="n", path="m.py", span=Span(line, 1, line, 2), function="f", message="m",
        why=(), root_cause=RootCause.RUNTIME, frequency="request", confidence=Confidence.MEDIUM, fix=fix,
    )  # fmt: skip


def test_one_patch_for_the_same_edits_and_clashes_wait() -> None:
    text = "x = f(1)\ny = 2\n"
    same = Fix("t", Safety.SAFE, edits=(Edit(4, 8, "g(1)"),), imports=(Import("g"),))
    inside = Fix("u", Safety.SAFE, edits=(Edit(6, 7, "3"),))
    other = Fix("v", Safety.SAFE, edits=(Edit(13, 14, "4"),), imports=(Import("g"),))
    found = [_finding("AWP101", same), _finding("AWP102", same), _finding("AWP103", inside), _finding("AWP104", other)]
    made = series(found, lambda path: Source.decode(path, text.encode()), unsafe=False)
    assert [[f.rule for f in patch.findings] for patch in made.patches] == [["AWP101", "AWP102"], ["AWP104"]]
    assert [f.rule for f in made.postponed] == ["AWP103"]
    assert "+import g\n" in made.patches[0].diff and "+import g\n" not in made.patches[1].diff
    assert " x = g(1)\n" in made.patches[1].diff, "the second patch stands on the first"
