"""For all tests."""

from __future__ import annotations

import os
import signal

import hypothesis

# The gate asks the same examples each time; `--hypothesis-profile=default` looks for new ones.
hypothesis.settings.register_profile("gate", derandomize=True)
hypothesis.settings.load_profile("gate")

os.environ["AWP_LINT_LEDGER"] = "off"  # what tests predict says nothing about the tool

# A shell without job control starts what runs in the background with SIGINT ignored, and programs that tests start
# would inherit that: then none of them could be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
