"""The guard on planted regressions and on clean runs: what it says of each.

    python benchmarks/verify/guard.py [--device cuda --size gpu] [--clean 20] [--seconds 6]

The program is ``corpus/planted/decode.py``, copied. ``--saved`` runs make the baseline; then unchanged runs, of which
none may raise anything, and one run for each change that is put into the copy. Each line: what was changed, the exit
code, and what the guard said.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLANTED = ROOT / "corpus" / "planted"
_FORWARD = "            hidden = layer(hidden)\n        return hidden\n"
_STEP = "        logits[:16] += positions\n"
_LAST = "        text.append(int(torch.multinomial(probs, 1)) + kept.shape[0] % 2)\n"
_SLOWER = """        until = time.perf_counter() + 0.05 * STEP_SECONDS
        while time.perf_counter() < until:
            pass
"""


@dataclass(frozen=True)
class Change:
    """Text put behind a line of the program, or ``instead`` of it.

    ``needs``: only on a GPU. ``fires``: whether the guard has to raise, None where saved runs may differ too much.
    """

    name: str
    behind: str
    text: str
    fires: bool | None
    needs: bool = False
    instead: bool = False


CHANGES = (
    Change("a read of a device value more", _STEP, "        if logits.sum().item() > 1e30:\n            break\n", True),
    Change("an item() of a host tensor more", _STEP, "        HERE.item()\n", False),
    Change("the model called once more", "        hidden = model(hidden)\n", "        model(hidden)\n", True),
    Change("an operation more", _STEP, "        logits = logits + 0.0\n", True),
    Change("a copy to the host more", _STEP, "        kept_here = logits[:64].cpu()\n", True),
    Change("a copy to the device more", _STEP, "        logits += torch.zeros(VOCAB).to(device)\n", True),
    Change("a wait for the device more", _STEP, "        torch.cuda.synchronize()\n", True, True),
    # As many kernels, one of which writes four times what is read of it.
    Change(
        "5 % of a step more on the device", "        logits = hidden[:VOCAB].clone()\n",
        "        logits = hidden.repeat(4)[:VOCAB]\n", True, True, True,
    ),
    # Behind a read: nothing on the device hides it.
    Change("5 % of a step more on the host", _LAST, _SLOWER, None, True),
    Change("half a percent of a step more on the host", _LAST, _SLOWER.replace("0.05", "0.005"), False, True),
)  # fmt: skip


def edited(folder: Path, change: Change | None, step_ms: float = 0.0) -> None:
    """Write the program into the folder, with the change; ``step_ms``: what the saved runs say of a step."""
    text = (PLANTED / "decode.py").read_text()
    text = text.replace("import sys\n", "import sys\nimport time  # noqa: F401\n", 1)
    text = text.replace("VOCAB = 1000\n", "VOCAB = 1000\nHERE = torch.ones(())\n", 1)
    if change is not None:
        assert text.count(change.behind) == 1, change.name
        added = change.text.replace("STEP_SECONDS", f"{step_ms / 1e3:.3e}")
        text = text.replace(change.behind, added if change.instead else change.behind + added)
    (folder / "decode.py").write_text(text)


def run(folder: Path, words: list[str], program: list[str]) -> tuple[int, list[str]]:
    """Exit code and the lines about the guard."""
    own = [sys.executable, "-m", "awp_lint", ".", "--isolated", "--no-cache", *words]
    report = folder / "report.json"
    own += ["--format", "json", "--output", str(report)]
    done = subprocess.run(
        [*own, "--profile", sys.executable, "decode.py", *program], cwd=folder, capture_output=True, text=True
    )
    lines = [line for line in done.stderr.splitlines() if "guard" in line or "more" in line or "saved" in line]
    if report.exists():
        found = (json.loads(report.read_text())["profile"] or {}).get("guard") or {}
        lines += [json.dumps(found)] if found else []
        report.unlink()
    return done.returncode, lines or done.stderr.splitlines()[-2:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--seconds", default="6", help="of the program's work a run (default %(default)s)")
    parser.add_argument("--clean", type=int, default=20, help="unchanged runs (default %(default)s)")
    parser.add_argument("--saved", type=int, default=2, help="runs in the baseline (default %(default)s)")
    parser.add_argument("--only", default="", help="changes whose names hold this text")
    options = parser.parse_args()
    program = ["--device", options.device, "--size", options.size, "--seconds", options.seconds]
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        shutil.copy(PLANTED / "common.py", folder)
        edited(folder, None)
        for _ in range(options.saved):
            code, lines = run(folder, ["--save-profile", "base.json", "--exit-zero"], program)
            print(f"baseline: exit {code} {' '.join(lines)[:300]}", flush=True)
        held = json.loads((folder / "base.json").read_text())["runs"]
        times = [one["profile"]["unit_ms"] for one in held]
        print("a step in the saved runs, ms:", *(f"{ms:.3f}" for ms in times), flush=True)
        busy = [one["profile"].get("gpu_busy_ms") for one in held]
        print("device time of it, ms:", *(f"{ms:.4f}" for ms in busy if ms is not None), flush=True)
        raised = 0
        for number in range(options.clean):
            code, lines = run(folder, ["--guard", "base.json"], program)
            raised += code != 0
            if code:
                print(f"unchanged, run {number + 1}: exit {code} {' '.join(lines)[:700]}", flush=True)
        print(f"unchanged: {raised} of {options.clean} runs raised something", flush=True)
        for change in CHANGES:
            if (change.needs and options.device == "cpu") or options.only not in change.name:
                continue
            edited(folder, change, statistics.median(times))
            code, lines = run(folder, ["--guard", "base.json"], program)
            right = change.fires is None or (code != 0) is change.fires
            wrong += not right
            judged = "open" if change.fires is None else "right" if right else "WRONG"
            print(f"{change.name}: exit {code}, {judged}: {' '.join(lines)[:700]}", flush=True)
    return 1 if wrong or raised else 0


if __name__ == "__main__":
    raise SystemExit(main())
