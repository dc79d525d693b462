"""The part of a project that one loop can reach, as semantic models: its file and what that imports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from awp_lint.detector.config import Settings
from awp_lint.detector.project.reading import ReadFile, read_bytes
from awp_lint.detector.project.screening import imported_names
from awp_lint.detector.project.source import Source, SourceError
from awp_lint.detector.semantics.asking import Asking, from_project
from awp_lint.detector.semantics.extract import extract
from awp_lint.detector.semantics.index import IndexedFile
from awp_lint.detector.semantics.linked import Linked
from awp_lint.detector.semantics.model import FileModel, FunctionModel
from awp_lint.detector.semantics.names import FileNames
from awp_lint.detector.semantics.summaries import summarise_file
from awp_lint.detector.work import parse, read

_MOST_FILES = 80


@dataclass
class Part:
    """One file of the part: its model and its source. ``real`` is its absolute path."""

    model: FileModel
    source: Source
    real: str


@dataclass
class ProjectPart:
    """The files by their shown path, and their functions by dotted name."""

    parts: dict[str, Part]
    functions: dict[str, tuple[FunctionModel, Part]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in self.parts.values():
            for view in part.model.functions():
                name = f"{view.module}.{view.qualname}" if view.module else view.qualname
                self.functions.setdefault(name, (view, part))


def load(path: str, files: Sequence[ReadFile], settings: Settings) -> ProjectPart | None:
    """The file with this shown path and, transitively, the project's files it imports.

    None where the file is not among ``files``, is no plain Python module, or the part is too large to be looked at.
    """
    start = next((file for file in files if file.found.path == path), None)
    if start is None or start.found.real.endswith(".ipynb"):
        return None
    chosen = _closure(start, files)
    if len(chosen) > _MOST_FILES:
        return None
    indexed, values, trees, sources = [], [], {}, {}
    for file in chosen:
        try:
            text, notebook = read(file.found.path, file.found.real)
            if notebook is not None:
                continue
            tree = parse(text, None)
            sources[file.found.path] = Source.decode(file.found.path, read_bytes(file.found.real))
        except (SourceError, OSError, RecursionError, MemoryError):
            continue
        facts = extract(tree, text)
        trees[file.found.path] = tree
        indexed.append(IndexedFile(file.found.path, file.found.real, file.module, file.is_package, facts))
        values.append(summarise_file(tree, FileNames(facts, file.module, file.is_package), target=settings.target))
    if path not in trees:
        return None
    linked = Linked(indexed, values, settings)
    facts_by_path = {file.path: file.facts for file in indexed}
    parts = {}
    for one in indexed:
        project = Asking(one.path, one.facts, from_project(linked, one.path), facts_by_path.__getitem__)
        model = FileModel(
            sources[one.path].text, trees[one.path], path=one.path, module=one.module, is_package=one.is_package,
            settings=settings, facts=one.facts, project=project,
        )  # fmt: skip
        parts[one.path] = Part(model, sources[one.path], one.real)
    return ProjectPart(parts)


def _closure(start: ReadFile, files: Sequence[ReadFile]) -> list[ReadFile]:
    by_name: dict[str, list[ReadFile]] = {}
    for file in files:
        by_name.setdefault(file.module.rpartition(".")[2], []).append(file)
    chosen = {start.found.path: start}
    pending = [start]
    while pending and len(chosen) <= _MOST_FILES:
        try:
            names = imported_names(read_bytes(pending.pop().found.real))
        except OSError:
            continue
        for name in sorted(names):
            for file in by_name.get(name, ()):
                if file.found.path not in chosen:
                    chosen[file.found.path] = file
                    pending.append(file)
    return list(chosen.values())
