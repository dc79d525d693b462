"""What the injection writes into real code: for each rule faults, and look-alikes that are right as they are.

``{x}`` is a floating point tensor that the function was given, ``{u}`` makes names unique. A fault of kind ``layer``
stands at the head of a real ``forward``; ``decoder`` the same where that is handed the cache of a generation, and
``encoder`` where nothing in the file generates; ``class`` is a method added to a real model that generates; ``module``
is code added at the end of a real file, ``file`` the same in a file without a model. Each snippet is whole, so that it
can be read alone. The order of the tables decides which sites a seed draws.
"""

from __future__ import annotations

from faults.apps import APPS
from faults.attention import ATTENTION
from faults.batching import BATCHING
from faults.communication import COMMUNICATION
from faults.fusion import FUSION
from faults.memory import MEMORY
from faults.precision import PRECISION
from faults.serving import SERVING
from faults.sync import SYNC
from faults.table import Faults

__all__ = ("ALL", "Faults")

ALL = (*SYNC, *ATTENTION, *MEMORY, *BATCHING, *FUSION, *PRECISION, *SERVING, *COMMUNICATION, *APPS)
