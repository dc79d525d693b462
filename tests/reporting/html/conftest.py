"""Lets the tests of this folder import the reports and sessions that its neighbours make by hand."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "profiling"), str(Path(__file__).parents[1])]
