"""Lets the tests of this folder and below import ``test_reports`` and what the profiling tests make by hand."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "profiling"), str(Path(__file__).parent)]
