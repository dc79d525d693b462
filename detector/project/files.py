"""Which files: walking folders, ``.gitignore``, include and exclude patterns, module names.

A file that the user names is always taken; folders are walked. What cannot be read becomes a problem and never stops
the walk. Links to folders are not followed, so a loop of links cannot trap it; a link that the user names is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Problem
from awp_lint.detector.project.kinds import Kind, kind_of

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_NAMESPACE_DEPTH = 4  # folders without ``__init__.py`` between a package and its file
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_SOURCE_FOLDERS = ("src", "lib", "python")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to lint. ``path`` is what people see: POSIX, relative to the working folder when below it."""

    path: str
    real: str
    named: bool  # the user named it: it is always linted, and a failure is fatal
    kind: Kind = Kind.PYTHON


def find_files(paths: Sequence[str], settings: Settings, cwd: str) -> tuple[list[FoundFile], list[Problem]]:
    """The files below ``paths``, each once, in order of their shown path."""
    found: dict[str, FoundFile] = {}
    problems: list[Problem] = []
    walker = _Walker(settings, cwd, problems)
    for given in paths:
        absolute = os.path.normpath(os.path.join(cwd, given))
        if os.path.isdir(absolute):
            for real, target in walker.walk(absolute):
                found.setdefault(target, _found(real, cwd, named=False))
        elif os.path.exists(absolute):
            found[os.path.realpath(absolute)] = _found(absolute, cwd, named=True)
        else:
            problems.append(Problem(shown_path(absolute, cwd), "no such file or folder", fatal=True))
    return sorted(found.values(), key=lambda f: f.path), problems


def _found(real: str, cwd: str, named: bool) -> FoundFile:
    path = shown_path(real, cwd)
    return FoundFile(path, real, named, kind_of(path))


def shown_path(absolute: str, cwd: str) -> str:
    """POSIX path, relative to the working folder when below it, else absolute."""
    prefix = cwd.rstrip(os.sep) + os.sep
    inside = absolute.startswith(prefix)
    return (absolute[len(prefix) :] if inside else absolute).replace(os.sep, "/")


class _Walker:
    def __init__(self, settings: Settings, cwd: str, problems: list[Problem]) -> None:
        from pathspec import GitIgnoreSpec

        self._make = GitIgnoreSpec.from_lines
        self.cwd = cwd
        self.problems = problems
        self.include = self._make(settings.include)
        self.plain_names = frozenset(p for p in settings.exclude if not set(p) & set("*?[]/!"))
        others = [p for p in settings.exclude if p not in self.plain_names]
        self.exclude = self._make(others) if others else None

    def walk(self, root: str) -> Iterator[tuple[str, str]]:
        """The files below a folder that the user named, each with what it is once links are followed.

        The folder itself is never excluded.
        """
        yield from self._folder(root, os.path.realpath(root), root, self._ignores_above(root))

    def _ignores_above(self, root: str) -> list[tuple[str, GitIgnoreSpec]]:
        """Ignore files of the folders around, up to the repository's root; none where they ignore the folder itself."""
        found: list[tuple[str, GitIgnoreSpec]] = []
        folder = os.path.dirname(root)
        inside_repository = os.path.exists(os.path.join(root, ".git"))
        while not inside_repository and folder != os.path.dirname(folder):
            spec = self._ignore_file(folder)
            if spec is not None:
                found.append((folder, spec))
            inside_repository = os.path.exists(os.path.join(folder, ".git"))
            folder = os.path.dirname(folder)
        if not inside_repository or _ignored(root, True, found[::-1]):
            return []
        return found[::-1]

    def _ignore_file(self, folder: str) -> GitIgnoreSpec | None:
        path = os.path.join(folder, ".gitignore")
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return self._make(file.read().splitlines())
        except (OSError, ValueError):  # a pattern that no one can read ignores nothing
            return None

    def _folder(
        self, folder: str, target: str, root: str, ignores: list[tuple[str, GitIgnoreSpec]]
    ) -> Iterator[tuple[str, str]]:
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.problems.append(Problem(shown_path(folder, self.cwd), f"cannot list: {error.strerror}"))
            return
        if any(entry.name == ".gitignore" for entry in listed):
            spec = self._ignore_file(folder)
            if spec is not None:
                ignores = [*ignores, (folder, spec)]
        for entry in listed:
            is_folder = entry.is_dir(follow_symlinks=False)
            link_to_folder = not is_folder and entry.is_symlink() and os.path.isdir(entry.path)
            if link_to_folder or not (is_folder or self.include.match_file(entry.name)):
                continue
            if self._excluded(entry.path, entry.name, is_folder, root) or _ignored(entry.path, is_folder, ignores):
                continue
            real = os.path.join(target, entry.name)  # links to folders are not followed
            if is_folder:
                yield from self._folder(entry.path, real, root, ignores)
            else:
                yield entry.path, os.path.realpath(real) if entry.is_symlink() else real

    def _excluded(self, path: str, name: str, is_folder: bool, root: str) -> bool:
        if name in self.plain_names:
            return True
        if self.exclude is None:
            return False
        tail = "/" if is_folder else ""
        return self.exclude.match_file(shown_path(path, self.cwd) + tail) or self.exclude.match_file(
            os.path.relpath(path, root).replace(os.sep, "/") + tail
        )


def _ignored(path: str, is_folder: bool, ignores: Sequence[tuple[str, GitIgnoreSpec]]) -> bool:
    """Whether the nearest ignore file that says anything about the path ignores it."""
    for folder, spec in reversed(ignores):
        relative = os.path.relpath(path, folder).replace(os.sep, "/") + ("/" if is_folder else "")
        answer = spec.check_file(relative).include
        if answer is not None:
            return answer
    return False


def module_name(real: str, roots: dict[str, str]) -> tuple[str, bool]:
    """The dotted module of a file, and whether it is a package's ``__init__``.

    Inside packages the name starts at the outermost package; elsewhere it is the path below the project's root, source
    folders left out, so that it does not depend on what was asked to be linted. ``roots`` remembers answers by folder.
    """
    folder, name = os.path.split(real)
    stem = name.rpartition(".")[0] or name
    prefix = roots.get(folder)
    if prefix is None:
        prefix = roots[folder] = _package_prefix(folder)
    if stem == "__init__" and prefix:
        return prefix, True
    return f"{prefix}.{stem}" if prefix else stem, False


def _inside_package(folder: str) -> str | None:
    """The name of a folder without ``__init__.py`` below a package: a namespace package. None where there is none."""
    current, below = folder, []
    for _ in range(_NAMESPACE_DEPTH):
        if any(os.path.exists(os.path.join(current, marker)) for marker in _PROJECT_FILES):
            return None
        current, name = os.path.split(current)
        if not name.isidentifier():
            return None
        below.append(name)
        if os.path.exists(os.path.join(current, "__init__.py")):
            return ".".join([_package_prefix(current), *reversed(below)])
    return None


def _package_prefix(folder: str) -> str:
    parts: list[str] = []
    current = folder
    while os.path.exists(os.path.join(current, "__init__.py")):
        current, name = os.path.split(current)
        parts.append(name)
        if not name:
            break
    around = _inside_package(current)
    if parts or around is not None:
        return ".".join([*([around] if around is not None else []), *reversed(parts)])
    for above in (Path(folder), *Path(folder).parents):
        if any((above / marker).exists() for marker in _PROJECT_FILES):
            relative = Path(folder).relative_to(above).parts
            if relative and relative[0] in _SOURCE_FOLDERS:
                relative = relative[1:]
            return ".".join(relative)
    return ""
