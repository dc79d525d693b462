"""For all tests."""

from __future__ import annotations

import signal

# A shell without job control starts what runs in the background with SIGINT ignored, and programs that tests start
# would inherit that: then none of them could be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
