"""Data of ours in bytes, and back. What comes back may have lain where others could write: it is data and nothing else.

Pickle is the form, since facts of many files have to be read in a moment. Pickle can also call anything: here it finds
no functions, only the plain classes that results are made of, by name and module, and imports nothing else.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import io
import pickle
from functools import cache
from typing import Any

from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Confidence

# Where these classes are; a name that ends in a dot stands for the modules below it.
_MODULES = (
    "awp_lint.detector.finding", "awp_lint.detector.scan", "awp_lint.detector.work",
    "awp_lint.detector.project.screening", "awp_lint.detector.project.reading", "awp_lint.detector.project.files",
    "awp_lint.detector.project.kinds", "awp_lint.detector.semantics.",
)  # fmt: skip
_BUILTINS = frozenset(("frozenset", "set", "complex", "bytearray", "range", "slice"))


#: Whether this Python writes members of enumerations as calls of ``getattr``, as 3.11.2 does; none is read.
_BY_GETATTR = Confidence.HIGH.__reduce_ex__(5)[0] is getattr


class _ByValue(pickle.Pickler):
    """Writes members of enumerations as other Pythons do."""

    def reducer_override(self, data: Any) -> Any:
        return (type(data), (data.value,)) if isinstance(data, enum.Enum) else NotImplemented


class StoredError(UsageError):
    """Bytes that are not what this tool has written; the message is one line."""


def dumps(data: Any) -> bytes:
    """The bytes of our data."""
    if not _BY_GETATTR:
        return pickle.dumps(data, protocol=5)
    out = io.BytesIO()
    _ByValue(out, protocol=5).dump(data)
    return out.getvalue()


def loads(data: bytes) -> Any:
    """Our data from its bytes. Raises :class:`StoredError` for anything else; runs nothing."""
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except StoredError:
        raise
    except Exception as error:  # damaged bytes raise anything
        raise StoredError(_words(f"{type(error).__name__}: {error}")) from None


def _words(what: str) -> str:
    return f"the cache holds what awp-lint has not written ({' '.join(what.split())[:200]}): delete it, or --no-cache"


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _known(module, name)


@cache
def _known(module: str, name: str) -> type[Any]:
    if module == "builtins" and name in _BUILTINS:
        found: type[Any] = getattr(importlib.import_module(module), name)
        return found
    if "." not in name and any(module == one or (one[-1] == "." and module.startswith(one)) for one in _MODULES):
        candidate = getattr(importlib.import_module(module), name, None)
        if isinstance(candidate, type) and candidate.__module__ == module and _is_plain(candidate):
            return candidate
    raise StoredError(_words(f"{module}.{name}"))


def _is_plain(candidate: type[Any]) -> bool:
    """Whether objects of a class are nothing but their fields."""
    return (
        dataclasses.is_dataclass(candidate)
        or issubclass(candidate, enum.Enum)
        or (issubclass(candidate, tuple) and hasattr(candidate, "_fields"))
    )
