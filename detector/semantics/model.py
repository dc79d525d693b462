"""The semantic model as rules see it: one file and its definitions, facts of the project and values put together.

:class:`FileModel` implements :class:`~awp_lint.detector.semantics.view.FileView`, :class:`FunctionModel`
:class:`~awp_lint.detector.semantics.view.FunctionView`. Everything is computed when it is first asked for.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from awp_lint.detector.config import Settings
from awp_lint.detector.semantics import once, paths, regions
from awp_lint.detector.semantics.asking import Asking, Entered, ProjectView, from_project
from awp_lint.detector.semantics.defined import definitions
from awp_lint.detector.semantics.definition import Definition, DefinitionNode, LoopNode
from awp_lint.detector.semantics.extract import extract
from awp_lint.detector.semantics.facts import BranchFact, FileFacts
from awp_lint.detector.semantics.index import IndexedFile
from awp_lint.detector.semantics.interpret import Known, interpret
from awp_lint.detector.semantics.linked import Linked
from awp_lint.detector.semantics.loops import loop_kind
from awp_lint.detector.semantics.names import FileNames, ScopeNames
from awp_lint.detector.semantics.outside import ValueTable
from awp_lint.detector.semantics.present import contradicted, used_outright
from awp_lint.detector.semantics.summaries import summarise_file
from awp_lint.detector.semantics.values import Kind, Value
from awp_lint.detector.semantics.view import Callers, Frequency, LoopKind, Region, Target


class FileModel:
    """One parsed file. ``module`` is its dotted name, ``path`` what findings print."""

    def __init__(
        self,
        text: str,
        tree: ast.Module,
        *,
        path: str,
        module: str,
        is_package: bool,
        settings: Settings,
        facts: FileFacts,
        project: ProjectView,
    ) -> None:
        self.text = text
        self.tree = tree
        self.path = path
        self.module = module
        self.settings = settings
        self.project = project
        self.file_regions = regions.file_regions(path)
        self._definitions = definitions(tree, text)
        self.names = FileNames(facts, module, is_package)
        self.memo: dict[Any, Any] = {}
        self.known = Known()
        self._bases: dict[ast.ClassDef, frozenset[str]] = {}
        self._views = {d: FunctionModel(self, d) for d in self._definitions}

    @property
    def imports(self) -> Mapping[str, str]:
        """Module-level names bound by imports, to what they mean."""
        return self.names.imports

    @property
    def target(self) -> Target:
        """What the code will run on."""
        return self.settings.target

    def speaks_of(self, word: str) -> bool:
        return self.project.speaks_of(word)

    def says(self, text: str) -> bool:
        return self.project.says(text)

    def is_spare(self, cls: str) -> bool:
        return self.project.is_spare(cls)

    def defaults(self, field: str) -> tuple[str, ...]:
        """The texts of a field's defaults in the configuration classes that the file imports or defines."""
        return self.project.defaults(field)

    @cached_property
    def wrapped(self) -> frozenset[str]:
        """Classes of the file that a call hands to what puts other implementations beside their own."""
        return regions.handed_to_switches(self.text)

    def bases(self, cls: ast.ClassDef, name: str) -> frozenset[str]:
        """Dotted names of all known bases of a class of the file, itself left out."""
        known = self._bases.get(cls)
        if known is None:
            own = {q for base in cls.bases if (q := self.names.qualified(base)) is not None}
            for base in tuple(own):
                own |= self.project.bases(base)
            known = self._bases[cls] = frozenset(own | self.project.bases(name)) - {name}
        return known

    def functions(self) -> Iterator[FunctionModel]:
        """The definitions in source order, the module's top level first."""
        return iter(self._views.values())

    def release(self) -> None:
        """Drop what views and definitions hold of each other, so that their memory goes back without a collector."""
        self._views.clear()
        self.memo.clear()
        for definition in self._definitions:
            definition.nested.clear()

    def view_of(self, definition: Definition) -> FunctionModel:
        """The view of one of this file's definitions."""
        return self._views[definition]


class FunctionModel:
    """One definition with its values, frequencies, regions and names."""

    def __init__(self, file: FileModel, definition: Definition) -> None:
        self.file = file
        self.definition = definition
        # several dozen rules ask the same of the same nodes
        self._loop_kinds: dict[ast.AST, LoopKind] = {}
        self._qualified: dict[ast.expr, str | None] = {}
        self._loops: dict[ast.AST, tuple[LoopNode, ...]] = {}
        self._written: dict[ast.AST, frozenset[str]] = {}
        self._regions: dict[ast.AST, Region] = {}
        self._around: dict[ast.AST, Region] = {}
        self._frequencies: dict[ast.AST, Frequency] = {}
        self._clocks: dict[ast.stmt, bool] = {}
        self.memo: dict[Any, dict[Any, Any]] = {}

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def module(self) -> str:
        return self.file.module

    @property
    def qualname(self) -> str:
        """Dotted, without ``<locals>``."""
        return self.definition.qualname

    @property
    def node(self) -> DefinitionNode:
        return self.definition.node

    @property
    def class_name(self) -> str | None:
        """Dotted name of the class that holds the method."""
        if self.definition.cls is None:
            return None
        scope = self.definition.qualname.rpartition(".")[0]
        return f"{self.module}.{scope}" if self.module else scope

    @cached_property
    def class_bases(self) -> frozenset[str]:
        """Dotted names of all known bases of that class, itself left out."""
        name, cls = self.class_name, self.definition.cls
        return frozenset() if name is None or cls is None else self.file.bases(cls, name)

    # structure -----------------------------------------------------------------------------------------------------

    def nodes(self, *types: type[ast.AST]) -> Sequence[ast.AST]:
        return self.definition.nodes(*types)

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self.definition.parent(node)

    def statement(self, node: ast.AST) -> ast.stmt:
        return self.definition.statement(node)

    def loops(self, node: ast.AST) -> tuple[LoopNode, ...]:
        if not self._has_loops:
            return ()
        known = self._loops.get(node)
        if known is None:
            known = self._loops[node] = self.definition.loops(node)
        return known

    @cached_property
    def _has_loops(self) -> bool:
        return bool(self.nodes(ast.For, ast.AsyncFor, ast.While, ast.comprehension))

    def loop_kind(self, loop: ast.AST) -> LoopKind:
        if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While, ast.comprehension)):
            return LoopKind.UNKNOWN
        known = self._loop_kinds.get(loop)
        if known is None:
            known = self._loop_kinds[loop] = loop_kind(loop)
        return known

    def assignments(self, name: str) -> Sequence[ast.stmt]:
        return self.definition.assignments(name)

    def uses(self, name: str) -> Sequence[ast.Name]:
        return self.definition.uses(name)

    def written_in(self, loop: ast.AST) -> frozenset[str]:
        known = self._written.get(loop)
        if known is None:
            known = self._written[loop] = self.definition.written_in(loop)
        return known

    def outer(self) -> FunctionModel | None:
        """The enclosing function's view; the module's top level is nobody's outer view."""
        outer = self.definition.outer
        return None if outer is None or outer.outer is None else self.file.view_of(outer)

    # names ---------------------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> ScopeNames:
        """Name resolution as this definition sees it."""
        return self.file.names.scope(self.definition)

    def qualified(self, node: ast.expr) -> str | None:
        if node not in self._qualified:
            self._qualified[node] = self._meaning(node)
        return self._qualified[node]

    def _meaning(self, node: ast.expr) -> str | None:
        name = self.names.qualified(node)
        if name is not None:
            return self.file.project.canonical(name)
        if not isinstance(node, ast.Attribute):
            return None
        value = self.value(node.value)
        if value.kind is Kind.TENSOR:
            return f"torch.Tensor.{node.attr}"
        if value.kind is Kind.NDARRAY:
            return f"numpy.ndarray.{node.attr}"
        owner = value.cls
        if owner is None and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            owner = self.class_name
        if owner is None or value.kind in (Kind.CALLABLE, Kind.EXTERNAL):
            return None
        return self.file.project.method(owner, node.attr) or f"{owner}.{node.attr}"

    def callers(self) -> Callers:
        return self.file.project.callers(self.definition.qualname, self.definition.first_line)

    def switches_off(self, function: str) -> bool:
        return self.file.project.switches_off(function)

    def targets(self, call: ast.Call) -> tuple[str, ...]:
        definition = self.definition
        place = (call.lineno, call.col_offset)
        return self.file.project.reached(definition.qualname, definition.first_line, place)

    # values --------------------------------------------------------------------------------------------------------

    @cached_property
    def table(self) -> ValueTable:
        """The values of this definition."""
        outer = self.outer()
        return interpret(
            self.node,
            self.names,
            self.file.project,
            qualname=self.qualname,
            cls=self.class_name,
            enclosing=None if outer is None else outer.table,
            target=self.file.target,
            known=self.file.known,
        )

    def value(self, node: ast.expr) -> Value:
        return self.table.value(node)

    # frequency and regions -----------------------------------------------------------------------------------------

    @cached_property
    def entered(self) -> Entered:
        """How often the definition is entered."""
        definition = self.definition
        return self.file.project.entered(definition.qualname, definition.first_line)

    @cached_property
    def _parts(self) -> tuple[tuple[BranchFact, Frequency | None], ...]:
        definition = self.definition
        return self.file.project.parts(definition.qualname, definition.first_line)

    def _parts_around(self, node: ast.AST) -> list[Frequency | None]:
        """How often the parts around a node are entered; None for one that no call makes run."""
        if not self._parts or not isinstance(node, (ast.expr, ast.stmt)):
            return []
        at = (node.lineno, node.col_offset)
        return [
            frequency
            for branch, frequency in self._parts
            if (branch.line, branch.column) <= at < (branch.end_line, branch.end_column)
        ]

    def frequency(self, node: ast.AST) -> Frequency:
        known = self._frequencies.get(node)
        if known is None:
            known = self._frequencies[node] = self._runs(node)
        return known

    def _runs(self, node: ast.AST) -> Frequency:
        base, cold, _ = self.entered
        if cold or not base.known:
            return base
        for part in self._parts_around(node):
            if part is not None and paths.weight(part.path) < paths.weight(base.path):
                base = part
        if once.made_once(self.definition.ancestors(node)):
            return Frequency((), base.certainty, base.chain)
        around = self.loops(node)
        single = once.loop_of_one_turn(self.definition.ancestors(node)) if around else None
        found = paths.inside(base, (self.loop_kind(loop) for loop in reversed(around) if loop is not single))
        if once.in_first_step(self.definition.ancestors(node)):
            return Frequency(paths.first(found.path), found.certainty, found.chain)
        return found

    @cached_property
    def own_regions(self) -> Region:
        """Regions that hold for the whole definition, those of the code around it included."""
        found = regions.definition_regions(self.definition, self.names.qualified)
        found |= regions.beside_training(self.file.file_regions, found)
        if self.definition.cls is not None and self.definition.cls.name in self.file.wrapped:
            found |= Region.FALLBACK
        outer = self.outer()
        if outer is not None:
            found |= outer.regions(self.definition.node)
        return found

    def regions(self, node: ast.AST) -> Region:
        known = self._regions.get(node)
        if known is None:
            known = self._regions[node] = self._surroundings(node)
        return known

    def _surroundings(self, node: ast.AST) -> Region:
        found = self._blocks(node)
        if None in self._parts_around(node):
            found |= Region.FALLBACK
        if not found & Region.TIMED and node is not self.definition.node:
            statement = self.definition.statement(node)
            if statement not in self._clocks:
                self._clocks[statement] = self._beside_clock(statement)
            if self._clocks[statement]:
                found |= Region.TIMED
        return found

    def _blocks(self, node: ast.AST) -> Region:
        """The regions of the blocks around a node: those around its parent, and what its place in there adds."""
        path = [node]
        while (found := self._around.get(path[-1])) is None:
            above = self.definition.parent(path[-1])
            if above is None:
                found = self._around[path[-1]] = self.own_regions
                break
            path.append(above)
        qualified: Callable[[ast.expr], str | None] = self.names.qualified
        for parent, child in itertools.pairwise(reversed(path)):
            more = regions.block_region(child, parent, qualified) | self._left_before(child, parent)
            if isinstance(parent, (ast.If, ast.IfExp)) and contradicted(child, parent, self._used_outright):
                more |= Region.FALLBACK
            if more is not Region.NONE:
                found |= more
            self._around[child] = found
        return found

    @cached_property
    def _used_outright(self) -> dict[str, int]:
        return used_outright(self.definition)

    @staticmethod
    def _left_before(child: ast.AST, parent: ast.AST) -> Region:
        """The region of what an earlier statement of a function's body or of a branch leaves to the rest."""
        found = Region.NONE
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.If)) and child in parent.body:
            for earlier in parent.body[: parent.body.index(child)]:
                found |= regions.leaves_to_rest(earlier)
        return found

    def _beside_clock(self, statement: ast.stmt) -> bool:
        above = self.definition.parent(statement) or self.definition.node
        for name in ("body", "orelse", "finalbody"):
            block = getattr(above, name, None)
            if isinstance(block, list) and statement in block:
                return regions.near_clock(statement, block)
        return False


def view_of_source(
    text: str, path: str = "x.py", target: Target | None = None, settings: Settings | None = None
) -> FileModel:
    """The view of one source text on its own. Raises :class:`SyntaxError`."""
    tree = ast.parse(text)
    chosen = settings or Settings()
    if target is not None:
        from dataclasses import replace

        chosen = replace(chosen, target=target)
    module = path.removesuffix(".py").replace("/", ".").strip(".")
    package = path.endswith("__init__.py")
    facts = extract(tree, text)
    file = IndexedFile(path, path, module, package, facts)
    values = summarise_file(tree, FileNames(facts, module, package), target=chosen.target)
    linked = Linked((file,), (values,), chosen)
    project = Asking(path, facts, from_project(linked, path), lambda _: facts)
    return FileModel(
        text, tree, path=path, module=module, is_package=package, settings=chosen, facts=facts, project=project
    )
