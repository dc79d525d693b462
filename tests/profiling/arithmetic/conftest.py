"""Lets the tests of this folder import ``handmade`` however pytest is started."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
