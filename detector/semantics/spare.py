"""Classes that nobody names: what a package keeps in its tree after it has given it up.

Only where a whole package is there to see can that be told, and only of files that say what they give others, or from
which others take some names. Whoever imports a class, holds its module or has its name in a string may make it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from awp_lint.detector.semantics.index import Index, IndexedFile
from awp_lint.detector.semantics.names import absolute_module

#: A string that is a class's name, alone or behind where it stands: what registries and settings hold.
_NAMED = re.compile(r"[\"'](?:[\w/.:-]+[.:/])?([A-Z]\w*)[\"']")
#: What the exports of a file are besides one list.
_ADDED = re.compile(r"__all__\s*[.+\[]")
#: What asks a class for those below it.
_BELOW = "__subclasses__"
#: Part of the names of what makes classes that a setting names: ``instantiate_from_config``.
_MAKES = "instantiate"


def named_in_strings(text: str) -> tuple[str, ...]:
    """The names of classes that the strings of a text are."""
    return tuple(sorted(set(_NAMED.findall(text))))


def adds_exports(text: str) -> bool:
    """Whether a text makes its ``__all__`` of more than one list."""
    return _ADDED.search(text) is not None


def is_spare(index: Index, path: str, cls: str) -> bool:
    """Whether a file's class, by its plain name, is not among what the file gives others, and no other file names it.
    False where that is not known: where the file does not say what it gives and nobody takes anything of it by name, or
    its package is not there as a whole."""
    number = next((n for n, file in enumerate(index.files) if file.path == path), None)
    if number is None:
        return False
    here = index.files[number]
    if not here.whole or cls in (here.facts.exports or ()):
        return False
    if here.facts.exports is None and not any(map(_takes_from(here.module), index.files)):
        return False
    cid = index.by_class.get(f"{here.module}.{cls}")
    if cid is None or index.method(cid, "__init_subclass__") is not None:
        return False
    named = _Named(cls, derived=len(index.mro(cid)) > 1)
    return not any(named.by(file, here.module) for file in index.files if file is not here)


def _takes_from(module: str) -> Callable[[IndexedFile], bool]:
    """Tells of files whether they import something of a module by its name."""

    def takes(file: IndexedFile) -> bool:
        return any(
            fact.name not in (None, "*")
            and fact.module.rpartition(".")[2] == module.rpartition(".")[2]
            and absolute_module(file.module, file.is_package, fact.level, fact.module or None) == module
            for fact in file.facts.imports
        )

    return takes


class _Named:
    """Tells who names a class, by its plain name, or makes classes by other means. ``derived``: from one of the
    project's."""

    def __init__(self, cls: str, derived: bool) -> None:
        self._cls = cls
        self._derived = derived

    def by(self, file: IndexedFile, module: str) -> bool:
        """Whether a file names the class, or holds the module that it is in."""
        facts = file.facts
        if self._cls in facts.strings or any(fact.name == self._cls for fact in facts.imports):
            return True
        for fact in facts.imports:
            base = absolute_module(file.module, file.is_package, fact.level, fact.module or None) or ""
            held = base if fact.name is None else f"{base}.{fact.name}"
            if held == module or module.endswith(f".{held}"):
                return True
        return (
            any(map(self._within, facts.variables))
            or any(self._within(cls.bases) for cls in facts.classes)
            or any(self._within(call.callee) for function in facts.functions for call in function.calls)
        )

    def _within(self, ref: object) -> bool:
        if isinstance(ref, tuple):
            return any(map(self._within, ref))
        last = ref.rpartition(".")[2] if isinstance(ref, str) else ""
        return last == self._cls or _MAKES in last or (self._derived and last == _BELOW)
