"""Facts about the libraries that inference code calls, as data tables."""

from awp_lint.detector.semantics.library.facts import Fact, Result, last_names, lookup

__all__ = ["Fact", "Result", "last_names", "lookup"]
