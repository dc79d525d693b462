"""Name resolution inside one file: what a ``Name`` or ``Attribute`` chain refers to, import aliases resolved."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from awp_lint.detector.semantics.definition import Definition
from awp_lint.detector.semantics.facts import FileFacts


def absolute_module(module: str, is_package: bool, level: int, name: str | None) -> str | None:
    """The dotted module that ``from {level dots}{name} import …`` means in ``module``; None above the top level."""
    if level == 0:
        return name or ""
    parts = module.split(".") if module else []
    drop = level - 1 if is_package else level
    if drop > len(parts):
        return None
    base = parts[: len(parts) - drop]
    return ".".join([*base, name] if name else base)


def import_bindings(node: ast.Import | ast.ImportFrom, module: str, is_package: bool) -> Iterator[tuple[str, str]]:
    """Pairs (bound name, dotted meaning) of one import statement; star imports bind nothing here."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname is not None:
                yield alias.asname, alias.name
            else:
                top = alias.name.partition(".")[0]
                yield top, top
        return
    base = absolute_module(module, is_package, node.level, node.module)
    if base is None:
        return
    for alias in node.names:
        if alias.name != "*":
            yield alias.asname or alias.name, f"{base}.{alias.name}" if base else alias.name


class FileNames:
    """The module's own table of names, from its facts. ``is_package`` is True for ``__init__.py``."""

    def __init__(self, facts: FileFacts, module: str, is_package: bool) -> None:
        self.module = module
        self.is_package = is_package
        self.imports: dict[str, str] = {}
        self.table: dict[str, str] = {}
        prefix = f"{module}." if module else ""
        for name in facts.names:
            self.table[name] = prefix + name
        for fact in facts.imports:
            if fact.scope or not fact.bound or fact.name == "*":
                continue
            base = absolute_module(module, is_package, fact.level, fact.module or None)
            if base is not None:
                meaning = base if fact.name is None else (f"{base}.{fact.name}" if base else fact.name)
                self.imports[fact.bound] = meaning
        self.table.update(self.imports)

    def qualified(self, node: ast.expr) -> str | None:
        """As :meth:`ScopeNames.qualified`, at the module's top level."""
        return dotted(node, self.table, {})

    def scope(self, definition: Definition) -> ScopeNames:
        """Names as the definition sees them."""
        return ScopeNames(self, definition)


class ScopeNames:
    """Name resolution inside one definition: local names hide the module's, local imports count."""

    def __init__(self, file: FileNames, definition: Definition) -> None:
        self._local: dict[str, str | None] = {}
        self._table = file.table
        self.module = file.module
        chain: list[Definition] = []
        current: Definition | None = definition
        while current is not None and current.outer is not None:
            chain.append(current)
            current = current.outer
        for scope in reversed(chain):
            self._local.update(dict.fromkeys(scope.local_names))
            for node in scope.nodes(ast.Import, ast.ImportFrom):
                assert isinstance(node, (ast.Import, ast.ImportFrom))
                self._local.update(import_bindings(node, file.module, file.is_package))
            for node in scope.nodes(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
                assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
                if scope.parent(node) is scope.node and len(scope.assignments(node.name)) == 1:
                    self._local[node.name] = f"{file.module}.{scope.prefix}{node.name}"

    def qualified(self, node: ast.expr) -> str | None:
        """Dotted name of a Name or Attribute chain; None for locals, parameters, builtins and other expressions."""
        return dotted(node, self._table, self._local)


def dotted(node: ast.expr, table: Mapping[str, str], local: Mapping[str, str | None]) -> str | None:
    """``a.b.c`` with its root replaced by what ``local`` and else ``table`` say; None where they say nothing."""
    parts: list[str] = []
    current = node
    while isinstance(current, ast.Attribute):
        parts.append(current.attr)
        current = current.value
    if not isinstance(current, ast.Name):
        return None
    name = current.id
    root = local[name] if name in local else table.get(name)
    if root is None:
        return None
    return ".".join([root, *reversed(parts)]) if parts else root
