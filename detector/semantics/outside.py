"""What the interpreter of one function may ask of the rest of the project, and what it gives back.

The seam between the value half (``interpret``, ``summaries``, ``library``) and the index half (``index``,
``callgraph``, ``frequency``): both sides code against these protocols, tests use small hand-made ones.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Protocol

from awp_lint.detector.semantics.values import Value


class Names(Protocol):
    """Name resolution inside one file."""

    @property
    def module(self) -> str: ...

    def qualified(self, node: ast.expr) -> str | None:
        """Dotted name of a Name/Attribute chain rooted in an import or a module-level definition, aliases resolved.

        ``F.softmax`` → ``torch.nn.functional.softmax``; a function or class of this file → ``pkg.mod.name``; a local
        variable, parameter or builtin → None (builtins are the interpreter's business).
        """


class Outside(Protocol):
    """Facts about other functions, classes and modules of the project. Unknown is None, never an exception."""

    def canonical(self, dotted: str) -> str:
        """The name where the thing is defined, re-exports and ``__init__`` aliases followed."""

    def is_function(self, dotted: str) -> bool: ...

    def is_class(self, dotted: str) -> bool: ...

    def bases(self, cls: str) -> frozenset[str]:
        """All known bases of a class (transitive, project and library), itself included."""

    def method(self, cls: str, name: str) -> str | None:
        """Dotted name of the method that an instance of ``cls`` would run, through the hierarchy; project only."""

    def returns(self, function: str) -> Value | None:
        """What a project function returns."""

    def attribute(self, cls: str, name: str) -> Value | None:
        """What ``self.name`` holds in instances of a project class."""

    def parameter(self, function: str, name: str) -> Value | None:
        """What the call sites pass, joined; None when no call site is known."""

    def global_value(self, dotted: str) -> Value | None:
        """What a module-level variable of the project holds."""


class ValueTable(Protocol):
    """The result of interpreting one definition."""

    def value(self, node: ast.expr) -> Value: ...

    @property
    def returns(self) -> Value: ...

    @property
    def attributes(self) -> Mapping[str, Value]:
        """``self.x`` assigned in this definition."""
