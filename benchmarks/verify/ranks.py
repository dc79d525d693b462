"""Two gloo ranks under torchrun: patches that drop a collective, or keep it, as the tool judges them.

    python benchmarks/verify/ranks.py [--budget 120]

Each line: the patch, the verdict, why, and for how long it took. None may hang.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import textwrap
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "verification"))

from proving import Loop, finding, proven

PROGRAM = textwrap.dedent("""\
    import torch
    import torch.distributed as dist

    def generate(rank, x):
        for step in range(6):
            x = x * 0.5 + rank
            dist.all_reduce(x)
        return x

    if __name__ == "__main__":
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        total = generate(rank, torch.ones(4))
        dist.barrier()
        if rank == 0:
            print(total.tolist())
        dist.destroy_process_group()
""")
COLLECTIVE = "dist.all_reduce(x)"
PATCHES = (
    ("dropped by all ranks", COLLECTIVE, "pass"),
    ("dropped by one rank", COLLECTIVE, "dist.all_reduce(x) if rank == 0 else None"),
    ("one rank does a step less", "range(6)", "range(6 - rank)"),
    ("kept", COLLECTIVE, "dist.all_reduce(x, dist.ReduceOp.SUM)"),
)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--budget", type=float, default=120.0, help="seconds a patch (default %(default)s)")
    args = parser.parse_args()
    for name, old, new in PATCHES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ranks.py"
            path.write_text(PROGRAM)
            words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(path)]
            began = time.monotonic()
            _, found = proven([finding(path, "PATCH", old, new)], [Loop(path)], words, args.budget, 300.0)
            (verdict,) = found.values()
            why = "; ".join((verdict.equality, *verdict.notes))
            print(f"{name}: {verdict.verdict.value} ({why}), {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
