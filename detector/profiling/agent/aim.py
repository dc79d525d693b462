"""Which marks no slice has shown yet, although they run: what a handler does once a request, for one.

Slices are short and follow the steps. A statement that runs now and then is met by a slice that begins at its opening.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from awp_lint.detector.profiling.agent.ring import BREAK

SLICES = 3  # of one mark, before it counts as shown
OFTEN = 10  # executions in a slice of more units: fewer may lie in threads that the trace cannot name


class Aim:
    """Fed with the codes of records, window by window."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._shown: Counter[int] = Counter()
        self._tried: Counter[int] = Counter()

    def marked(self, codes: Iterable[int]) -> None:
        """A marks-only window's records."""
        self._seen.update(code >> 1 for code in codes if code != BREAK)

    def sliced(self, codes: Iterable[int], units: int = 0) -> None:
        """A slice's records. What ran in few of its ``units`` counts as shown only by slices that waited for it."""
        opened = Counter(code >> 1 for code in codes if code != BREAK and code & 1)
        closed = Counter(code >> 1 for code in codes if code != BREAK and not code & 1)
        for mark, count in (opened & closed).items():
            shown = self._shown[mark] + count
            self._shown[mark] = shown if count >= min(OFTEN, units) else max(self._shown[mark], min(shown, SLICES - 1))

    def tried(self, marks: Iterable[int]) -> None:
        """A slice began at the opening of these; it may have ended before them."""
        self._tried.update(marks)

    def forget(self, marks: Iterable[int]) -> None:
        """They were waited for and did not come."""
        self._seen.difference_update(marks)

    def wanted(self, units: Iterable[int]) -> frozenset[int]:
        """Marks that run in marks-only windows and have not been shown often enough; those of units never need it."""
        return frozenset(
            mark for mark in self._seen - set(units) if self._shown[mark] < SLICES and self._tried[mark] < SLICES
        )
