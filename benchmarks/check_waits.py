"""Check on a CUDA device which facts of ``library/torch.facts`` are true when they say that a call waits, or does not.

Each call is made behind a kernel that sleeps: a call that takes as long as the sleep has waited for the device. Prints
one line for every fact that the table has wrong, and the count of those that could not be called with simple arguments.
"""

from __future__ import annotations

import importlib
import sys
import time
import warnings
from typing import Any

from awp_lint.detector.semantics.library.facts import Fact, table

SLEEP_MS = 30.0


def main() -> int:
    import torch

    if not torch.cuda.is_available():
        print("needs a CUDA device")
        return 2
    warnings.filterwarnings("ignore")
    cycles = _cycles_for(SLEEP_MS)
    x = torch.rand(4, 4, device="cuda") * 0.8 + 0.1  # probabilities too: an assertion on the device ends everything
    square = x @ x.T + torch.eye(4, device="cuda") * 4
    n = torch.tensor([0, 1, 2, 3], device="cuda")
    m = torch.ones(4, 4, device="cuda")
    image = torch.rand(2, 3, 8, 8, device="cuda")
    candidates: list[tuple[Any, ...]] = [
        (x,), (x, 0), (x, m), (x, 2), (x, m > 0, 0.0), (x, m > 0), (x, 0, n), (n,), (n, n), (x, m, m), ([x, m],), (4,),
        (4, 4), (0, 4), ((4, 4),), (image,), (image, 2), (x, 0, n[None]), (x, 0, n[None], 1.0), (m > 0,), (m > 0, x, m),
        (x, (4, 4)), (x, 1, 0), (x, x[0], x[0]), (x, x, x, 1), ((4, 4), 1.0), (5, (4, 4)), (image, (8, 8)), (square,),
        (square, x), (n, x), (x, n), (x, n[None]), (image, torch.rand(3, 3, 3, 3, device="cuda")), ("ij,jk->ik", x, m),
        (image, (2, 2)), (image[0], 3), (image, 3), (image.flatten(2), 2), (image[None], 2), (x, 0, 1, 2), (4, 4, 4),
    ]  # fmt: skip
    wrong: list[str] = []
    unchecked: list[str] = []
    checked = 0
    for name, facts in sorted(table().items()):
        fact = facts[-1]
        if not name.startswith("torch.") or not (fact.launches or fact.waits) or "collective" in fact.effects:
            continue
        waited = _waits(name, candidates, cycles)
        if waited is None:
            unchecked.append(name)
            continue
        checked += 1
        if fact.wait_condition is None and waited != fact.waits:
            wrong.append(f"{name}: {'waits' if waited else 'does not wait'}, the table says {_said(fact)}")
        elif fact.wait_condition is not None:
            print(f"{name}: {'waits' if waited else 'does not wait'} here, the table says {_said(fact)}")
    print("\n".join(wrong))
    print(
        f"torch {torch.__version__}: {checked} facts checked, {len(wrong)} wrong, {len(unchecked)} not callable simply:"
    )
    print(" ".join(unchecked))
    return 1 if wrong else 0


def _said(fact: Fact) -> str:
    if fact.wait_condition is not None:
        return f"it waits on {fact.wait_condition}"
    return "it waits" if fact.waits else "it does not"


def _cycles_for(milliseconds: float) -> int:
    import torch

    trial = 100_000_000
    torch.cuda._sleep(1000)
    torch.cuda.synchronize()
    start = time.perf_counter()
    torch.cuda._sleep(trial)
    torch.cuda.synchronize()
    return int(trial * milliseconds / ((time.perf_counter() - start) * 1e3))


def _waits(name: str, candidates: list[tuple[Any, ...]], cycles: int) -> bool | None:
    """Whether the call waits with the first arguments that it takes and that put a tensor on the device."""
    import torch

    function: Any = importlib.import_module("torch")
    for part in name.split(".")[1:]:
        function = getattr(function, part, None)
    if not callable(function):
        return None
    for arguments in candidates:
        keywords = {} if any(isinstance(a, torch.Tensor) for a in arguments) else {"device": "cuda"}
        if arguments and isinstance(arguments[0], list):
            keywords = {}
        try:
            for _ in range(2):
                function(*_copies(arguments), **keywords)
            torch.cuda.synchronize()
        except Exception as error:
            if "device-side assert" in str(error):
                raise SystemExit(
                    f"{name} failed an assertion on the device; no call after it means anything"
                ) from error
            continue
        times = []
        for _ in range(2):
            ready = _copies(arguments)
            torch.cuda.synchronize()
            torch.cuda._sleep(cycles)
            start = time.perf_counter()
            function(*ready, **keywords)
            times.append((time.perf_counter() - start) * 1e3)
            torch.cuda.synchronize()
        return min(times) > SLEEP_MS / 2
    return None


def _copies(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Fresh arguments, since some calls write into theirs."""
    import torch

    return tuple(a.clone() if isinstance(a, torch.Tensor) else a for a in arguments)


if __name__ == "__main__":
    sys.exit(main())
