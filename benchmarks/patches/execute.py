"""Every rewrite run beside the code that it replaces, on random tensors: one table.

    python benchmarks/patches/execute.py [AWP105 …] [--device cuda] [--show]

Each case (``cases.py``) is rewritten by its rule alone, pass after pass until nothing changes; both versions then get
the same inputs: three types, and tensors that are plain, not contiguous, hold NaN (some infinities too) and a negative
zero, or are empty. Results are compared in structure, shape, type and value: bit for bit, sign of zero and place of NaN
included, unless the rule's page grants a tolerance. That is a number of units in the last place of a result's largest
value. ``--show`` prints the rewritten code. Libraries other than torch are replaced by stand-ins (``standins.py``);
collectives run in a group of one. The exit code is 1 where something differs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import platform
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import standins
import torch
from cases import CASES, Case, Inputs
from torch import nn

from awp_lint.detector.finding import Safety
from awp_lint.detector.project.source import Source
from awp_lint.detector.semantics.model import view_of_source
from awp_lint.patches.plan import plan_file
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules

TOLERANCE = {rule.id: rule.tolerance for rule in all_rules()}


@dataclass
class Outcome:
    """What came of one case. ``worst``: the largest difference, in units in the last place of the largest value."""

    case: Case
    safety: str
    calls: int = 0
    raised: int = 0  # calls on which the code as it was raises
    worst: float = 0.0
    types: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)


def rewritten(code: str, rule: str) -> tuple[str, str]:
    """The code after one rule's fixes, and their safety: ``safe``, ``unsafe`` or both."""
    seen: set[Safety] = set()
    for _ in range(6):
        findings = run_rules(view_of_source(code, path="code.py"), all_rules()).findings
        found = [f for f in findings if f.rule == rule and f.fix is not None and f.fix.edits]
        if not found:
            return code, " + ".join(sorted(one.value for one in seen))
        patch = plan_file(Source.decode("code.py", code.encode()), found)
        seen |= {f.fix.safety for f in patch.applied if f.fix is not None}
        code = patch.after
    raise RuntimeError(f"the fixes of {rule} never settle")


def module(code: str, use: str, device: str) -> ModuleType:
    """The code as a module. What it puts on the accelerator goes to ``device``."""
    text = code + use
    if device == "cpu":
        text = re.sub(r"\.cuda\(\)", '.to("cpu")', text).replace('"cuda"', '"cpu"').replace("'cuda'", "'cpu'")
    made = ModuleType("code")
    exec(compile(text, "code.py", "exec"), made.__dict__)
    return made


def run_case(case: Case, device: str) -> Outcome:
    """Both versions on all inputs that the case is for."""
    after, safety = rewritten(case.text, case.rule)
    outcome = Outcome(case, safety)
    if after == case.text or case.has not in after or case.lacks in after:
        outcome.wrong.append("is not rewritten as it should be")
        return outcome
    for dtype in case.dtypes:
        for kind in case.kinds:
            results = [_results(code, case, Inputs(dtype, kind, device)) for code in (case.text, after)]
            label = f"{_short(dtype)} {kind}"
            outcome.types.add(_short(dtype))
            outcome.kinds.add(kind)
            if len(results[0]) != len(results[1]):
                outcome.wrong.append(f"{label}: {results}")
            for one, other in zip(*results, strict=False):
                outcome.calls += 1
                if isinstance(one, Exception):
                    outcome.raised += 1
                    continue
                if isinstance(other, Exception):
                    outcome.wrong.append(f"{label}: raises {other!r}"[:300])
                    continue
                try:
                    outcome.worst = max(outcome.worst, difference(one, other, TOLERANCE[case.rule]))
                except Different as error:
                    outcome.wrong.append(f"{label}: {error}")
    if outcome.raised == outcome.calls:
        outcome.wrong.append("no call gave a result")
    return outcome


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _results(code: str, case: Case, inputs: Inputs) -> list[Any]:
    """What the calls give; an exception where one raises."""
    found: list[Any] = []
    torch.manual_seed(0)
    try:
        program = module(code, case.use, inputs.device)
        calls = list(case.inputs(inputs))
    except Exception as error:  # a snippet may do anything
        return [error]
    for arguments in calls:
        torch.manual_seed(1)
        try:
            found.append(program.run(*arguments))
        except Exception as error:
            found.append(error)
        finally:
            torch.set_float32_matmul_precision("highest")
            torch.cuda.set_sync_debug_mode("default")
    return found


class Different(AssertionError):
    """Two results differ by more than they may."""


def difference(one: Any, other: Any, tolerance: int) -> float:
    """The largest difference in units in the last place of the largest value of its tensor; 0.0 for the same bits.

    Raises :class:`Different` where it is larger than ``tolerance`` or anything else differs.
    """
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return _tensors(one.detach().cpu(), other.detach().cpu(), tolerance)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        pairs = zip(one, other, strict=True)
        return max((difference(a, b, tolerance) for a, b in pairs), default=0.0)
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        return max((difference(a, other[key], tolerance) for key, a in one.items()), default=0.0)
    if type(one) is type(other) and isinstance(one, float):
        return _tensors(torch.tensor(one), torch.tensor(other), tolerance)
    if type(one) is not type(other) or one != other:
        raise Different(f"{one!r} became {other!r}"[:300])
    return 0.0


def _tensors(one: torch.Tensor, other: torch.Tensor, tolerance: int) -> float:
    if one.shape != other.shape or one.dtype != other.dtype:
        raise Different(f"{one.dtype} {tuple(one.shape)} became {other.dtype} {tuple(other.shape)}")
    if not one.is_floating_point():
        if not torch.equal(one, other):
            raise Different(f"{one} became {other}"[:300])
        return 0.0
    if not torch.equal(one.isnan(), other.isnan()):
        raise Different(f"{int(one.isnan().sum())} NaN became {int(other.isnan().sum())}, of {one.numel()}")
    a, b = one.double().nan_to_num(0.0, 0.0, 0.0), other.double().nan_to_num(0.0, 0.0, 0.0)
    if not torch.equal(one.isinf() * one.sign(), other.isinf() * other.sign()):
        raise Different("infinities at other places")
    if tolerance == 0 and not torch.equal(one.signbit() & ~one.isnan(), other.signbit() & ~other.isnan()):
        raise Different("another sign of zero")  # that of NaN says nothing
    if not one.numel():
        return 0.0
    unit = torch.finfo(one.dtype).eps * float(a.abs().max().clamp_min(torch.finfo(one.dtype).tiny))
    found = float((a - b).abs().max()) / unit
    if found > tolerance:
        raise Different(f"{found:.1f} units in the last place of the largest value, allowed {tolerance}")
    return found


@contextlib.contextmanager
def surroundings(device: str) -> Iterator[None]:
    """What snippets expect around them: files, libraries, a process group; their output goes nowhere."""
    home, switches = os.getcwd(), dict(os.environ)
    real = {name: getattr(torch.cuda, name) for name in ("synchronize", "set_sync_debug_mode")}
    with tempfile.TemporaryDirectory() as folder, standins.installed(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        weights = nn.ModuleDict({"conv": nn.Conv2d(3, 8, 3), "norm": nn.BatchNorm2d(8)})
        torch.save(weights.state_dict(), "net.pt")
        if device == "cpu":
            for name in real:
                setattr(torch.cuda, name, lambda *given: None)
        alone = torch.distributed.HashStore()  # type: ignore[attr-defined]
        torch.distributed.init_process_group("gloo" if device == "cpu" else "nccl", store=alone, rank=0, world_size=1)
        level = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        finally:
            logging.disable(level)
            torch.distributed.destroy_process_group()
            for name, function in real.items():
                setattr(torch.cuda, name, function)
            os.environ.clear()
            os.environ.update(switches)
            os.chdir(home)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", nargs="*", metavar="AWPnnn")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--show", action="store_true", help="print the rewritten code")
    options = parser.parse_args()
    name = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    print(f"Python {platform.python_version()}, torch {torch.__version__}, {name}")
    begun = time.perf_counter()
    chosen = [case for case in CASES if not options.rules or case.rule in options.rules]
    with surroundings(options.device):
        outcomes = [run_case(case, options.device) for case in chosen]
    if options.show:
        for case in chosen:
            print(f"--- {case.rule} {case.name}\n{rewritten(case.text, case.rule)[0]}")
    print(
        f"{'rule':8}{'snippet':27}{'rewrite':15}{'types':>6}{'kinds':>6}{'calls':>6}{'raised':>7}{'worst':>8}{'may':>5}"
    )
    for one in outcomes:
        case = one.case
        print(
            f"{case.rule:8}{case.name:27}{one.safety:15}{len(one.types):>6}{len(one.kinds):>6}{one.calls:>6}"
            f"{one.raised:>7}{one.worst:>8.2f}{TOLERANCE[case.rule] or '=':>5}{'  WRONG' if one.wrong else ''}"
        )
    for one in outcomes:
        for line in one.wrong:
            print(f"WRONG {one.case.rule} {one.case.name}: {line}")
    missing = sorted(r.id for r in all_rules() if r.rewrites() and r.id not in {c.rule for c in CASES})
    print(
        f"{len(outcomes)} snippets of {len({c.rule for c in chosen})} rules, {sum(o.calls for o in outcomes)} calls of"
    )
    print(
        f"each version, {time.perf_counter() - begun:.0f} s; rules with a rewrite and no snippet: {missing or 'none'}"
    )
    return 1 if any(one.wrong for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
