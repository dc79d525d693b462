"""Where the helper goes in the user's project, and how its files import it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from awp_lint.detector.finding import Import
from awp_lint.patches.steploop.project import Part, ProjectPart

NAME = "step_graph"
CACHE = "step_cache"
CACHE_NAMES = frozenset({"grow", "length_of", "attend"})
_OURS = "awp_lint.patches.steploop."


def helper_text(name: str, graph_module: str) -> str:
    """A helper module as it is written into the user's project, where ``step_graph`` is called ``graph_module``."""
    text = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    return text.replace(f"{_OURS}{NAME}", graph_module)


@dataclass(frozen=True, slots=True)
class Place:
    """A helper's path, as findings print paths, the module's dotted name, and whether the file is there already."""

    path: str
    module: str
    exists: bool

    def imports(self, names: Iterable[str]) -> tuple[Import, ...]:
        """The imports that a file needs for these names."""
        return tuple(Import(self.module, name) for name in sorted(names))


def place_beside(part: Part, project: ProjectPart, helper: str = NAME) -> Place | None:
    """A place for a helper beside a file; None where another module has its name."""
    folder = Path(part.real).parent
    shown = part.model.path.rpartition("/")[0]
    sign = {NAME: "def run_step(", CACHE: "def grow("}[helper]
    for name in (helper, f"{helper}s"):
        real = folder / f"{name}.py"
        exists = real.exists()
        if exists and sign not in real.read_text(encoding="utf-8", errors="replace"):
            continue
        prefix = _prefix(folder, project)
        module = f"{prefix}.{name}" if prefix else name
        return Place(f"{shown}/{name}.py" if shown else f"{name}.py", module, exists)
    return None


def _prefix(folder: Path, project: ProjectPart) -> str:
    """How the project's files call the package that a folder is: told by their imports, else by ``__init__.py``."""
    for part in project.parts.values():
        for node in ast.walk(part.model.tree):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                words = node.module.split(".")
                for other in project.parts.values():
                    path = Path(other.real)
                    if path.parent == folder and path.with_suffix("").parts[-len(words) :] == tuple(words):
                        return ".".join(words[:-1])
    names: list[str] = []
    while (folder / "__init__.py").exists():
        names.insert(0, folder.name)
        folder = folder.parent
    return ".".join(names)
