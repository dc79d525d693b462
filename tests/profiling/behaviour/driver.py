"""Runs a command under the agent as the tool does, with a plan made from a program's text; run as a script.

    python driver.py JOB.json

The session is pickled to the file that the job names; the exit code is the command's, as a shell would give it.
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from programs import plan_of

from awp_lint.detector.profiling.launch import Plan, RunOptions, run_profiled


def main() -> int:
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    wanted = [tuple(entry) for entry in job["wanted"]]
    plan = plan_of(Path(job["program"]), wanted) if wanted else Plan()
    said: list[str] = []
    session = run_profiled(job["command"], plan, RunOptions(say=said.append, **job["options"]))
    Path(job["result"]).write_bytes(pickle.dumps((session, said)))
    code = session.exit_code
    assert code is not None
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
