"""``python -m awp_lint`` is the ``awp-lint`` command."""

import os
import sys

# With -m Python looks for modules in the working folder first, which is often the code under review: a `json.py` there
# must not become ours. The `awp-lint` script has no such entry.
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if not getattr(sys.flags, "safe_path", False) and sys.path and os.path.abspath(sys.path[0]) == os.getcwd() != _HERE:
    del sys.path[0]

from awp_lint.detector.cli import script  # noqa: E402

if __name__ == "__main__":
    script()
