"""Whether the timers of the planted truth change what they time: copies of a program with all timers, and with one.

    python benchmarks/profile/timers.py detect detect-8 --device cuda --size gpu

Two copies with timers at all planted places and two with a timer at the one asked for do requests in turns; printed are
tenths of the time of that place in each. No profile run is there. Where copies with the same timers agree and the two
kinds do not, the place's time hangs on what runs before it, and no timer tells the time that it has without timers.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PLANTED = Path(__file__).resolve().parents[2] / "corpus" / "planted"
sys.path.insert(0, str(PLANTED))

from common import Options  # noqa: E402
from truth import Clock, Plant, plants, timed_requests  # noqa: E402

#: Its clock, the place's number in it, and its requests.
Copy = tuple[Clock, int, Iterator[None]]


def copy(program: Path, planted: list[Plant], place: str, options: Options) -> Copy:
    """A copy of the program with timers at these places, that does a request when it is asked for the next one."""
    clock = Clock(len(planted))
    return clock, [plant.id for plant in planted].index(place), timed_requests(program, planted, clock, options)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="name below corpus/planted")
    parser.add_argument("place", help="id of a planted place, such as detect-8")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--seconds", type=float, default=6.0)
    args = parser.parse_args()
    program = PLANTED / f"{args.program}.py"
    planted = plants(program)
    alone = [plant for plant in planted if plant.id == args.place]
    if not alone:
        parser.error(f"{args.program} has no place {args.place}")
    options = Options(args.device, args.size, 1.0)
    copies = {
        name: copy(program, places, args.place, options)
        for name, places in (("all", planted), ("alone", alone), ("all again", planted), ("alone again", alone))
    }
    for seconds in (2.0, args.seconds):
        for clock, _, _ in copies.values():
            clock.reset()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _, _, requests in copies.values():
                next(requests)
    for name, (clock, number, _) in copies.items():
        spent = sorted(clock.spent[number])
        tenths = "  ".join(f"{spent[len(spent) * part // 10] / 1e3:.2f}" for part in range(1, 10))
        print(f"{name:11}  n {len(spent)}  mean {statistics.fmean(spent) / 1e3:.2f} us  tenths {tenths}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
