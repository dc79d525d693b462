"""Profiles a running program as ``--attach`` does, with a plan made from its text; run as a script.

python attach_driver.py JOB.json
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from programs import plan_of

from awp_lint.detector.errors import UsageError
from awp_lint.detector.profiling.attach import attached
from awp_lint.detector.profiling.launch import RunOptions


def main() -> int:
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    plan = plan_of(Path(job["program"]), [tuple(entry) for entry in job["wanted"]])
    try:
        with attached(job["target"], plan, RunOptions(**job["options"])) as session:
            Path(job["result"]).write_bytes(pickle.dumps(session))
    except UsageError as error:
        print(error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
