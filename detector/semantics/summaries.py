"""What one file says about values, for the rest of the project: returns, attributes, call arguments, globals.

:func:`summarise_file` interprets every definition of a file once, without knowing any other file: what depends on
others stays a deferred reference (:mod:`.interpret.references`). The result is small, picklable and depends on the
file's text, its module name and the target alone. :func:`link_values` answers the value half of
:class:`~awp_lint.detector.semantics.outside.Outside` from the summaries of all files.
"""

from __future__ import annotations

import ast
import marshal
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from awp_lint.detector.semantics.coding import Coded, encode
from awp_lint.detector.semantics.copies import Copied, Stretch
from awp_lint.detector.semantics.interpret import Table, run, tensors
from awp_lint.detector.semantics.interpret.annotations import annotated
from awp_lint.detector.semantics.interpret.machine import Machine
from awp_lint.detector.semantics.outside import Names
from awp_lint.detector.semantics.resaying import Call, Meanings, Moved, Place, ValuesCopy, holds
from awp_lint.detector.semantics.values import UNKNOWN, Kind, Value, make
from awp_lint.detector.semantics.view import Target

if TYPE_CHECKING:
    from awp_lint.detector.semantics.linking import Index, LinkedValues

FORMAT = 1  # changes with the meaning of the data below

_SET_UP = frozenset({"__init__", "__post_init__", "setup", "__new__", "__setstate__", "_init_weights"})
MAX_CALLS = 4000  # calls noted of one file
MAX_RETURNS = 12  # return statements noted of one function
_MARSHAL_VERSION = 2  # later ones tell how often an object is referred to, which is chance


class CallArguments(NamedTuple):
    """One call of something that may be a project function: a dotted name or a deferred reference."""

    callee: str
    positional: tuple[Coded, ...]
    keywords: tuple[tuple[str, Coded], ...]


class FunctionValues(NamedTuple):
    """One function or method. ``name`` is its qualified name in the file, ``<locals>`` left out."""

    name: str
    parameters: tuple[str, ...]  # positional ones, self left out
    returns: tuple[Coded, ...]  # one a return statement, duplicates left out
    declared: Coded | None  # by the return annotation
    generator: bool
    is_property: bool


class AttributeValues(NamedTuple):
    """What is assigned to one attribute: in set-up methods, in other methods, at class level."""

    set_up: tuple[Coded, ...]
    later: tuple[Coded, ...]
    declared: Coded | None


class ClassValues(NamedTuple):
    """One class. ``bases`` are dotted names in order."""

    name: str
    bases: tuple[str, ...]
    attributes: dict[str, AttributeValues]


class Body(NamedTuple):
    """Everything a file says, unpacked."""

    functions: dict[str, FunctionValues]
    classes: dict[str, ClassValues]
    variables: dict[str, Coded]
    calls: tuple[CallArguments, ...]


@dataclass(frozen=True, slots=True)
class FileValues:
    """The summary of one file: what it calls by last name, and the rest packed until it is asked for."""

    module: str
    called: frozenset[str]
    packed: bytes

    def unpack(self) -> Body:
        """The contents."""
        functions, classes, variables, calls = marshal.loads(zlib.decompress(self.packed))
        return Body(
            {f[0]: FunctionValues(*f) for f in functions},
            {
                name: ClassValues(name, bases, {a: AttributeValues(*values) for a, values in attributes})
                for name, bases, attributes in classes
            },
            dict(variables),
            tuple(CallArguments(*call) for call in calls),
        )


def last_name(callee: str) -> str:
    """The last name of a callee, which the name of the function that it reaches must equal."""
    start = len(callee)
    while start > 0 and (callee[start - 1].isalnum() or callee[start - 1] == "_"):
        start -= 1
    return callee[start:]


class _FileOnly:
    """An outside that knows the names of one file and defers the rest."""

    def __init__(self, functions: frozenset[str], classes: frozenset[str], variables: frozenset[str]) -> None:
        self._functions = functions
        self._classes = classes
        self._variables = variables

    def canonical(self, dotted: str) -> str:
        return dotted

    def is_function(self, dotted: str) -> bool:
        return dotted in self._functions

    def is_class(self, dotted: str) -> bool:
        return dotted in self._classes

    def bases(self, cls: str) -> frozenset[str]:
        return frozenset({cls})

    def method(self, cls: str, name: str) -> str | None:
        return None

    def returns(self, function: str) -> Value | None:
        return make(Kind.UNKNOWN, cls=f"{function}()")

    def attribute(self, cls: str, name: str) -> Value | None:
        return make(Kind.UNKNOWN, cls=f"{cls}.{name}")

    def parameter(self, function: str, name: str) -> Value | None:
        return make(Kind.UNKNOWN, cls=f"{function}:{name}")

    def global_value(self, dotted: str) -> Value | None:
        return make(Kind.UNKNOWN, cls=dotted) if dotted in self._variables else None


FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCKS = frozenset(
    {
        *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.ExceptHandler, ast.Match),
        *(ast.match_case, getattr(ast, "TryStar", ast.Try)),
    }
)


_HOLDERS = _BLOCKS | {*_FUNCTIONS, ast.ClassDef}  # statements in which definitions may stand


class _Found(NamedTuple):
    node: FunctionNode
    name: str
    cls: str | None  # qualified name of the class that directly holds it
    outer: int | None  # index of the function around it


class Said(NamedTuple):
    """What a function says of itself, of its class and in its calls."""

    function: tuple[Any, ...]  # the fields of :class:`FunctionValues` behind the name
    attributes: tuple[tuple[str, Coded], ...]
    calls: Sequence[Call]


def _definitions(tree: ast.Module) -> tuple[list[_Found], list[tuple[ast.ClassDef, str]]]:
    """All functions (outer ones first) and classes, without recursion."""
    functions: list[_Found] = []
    classes: list[tuple[ast.ClassDef, str]] = []
    stack: list[tuple[ast.stmt, str, str | None, int | None]] = [(node, "", None, None) for node in reversed(tree.body)]
    while stack:
        node, prefix, cls, outer = stack.pop()
        if isinstance(node, _FUNCTIONS):
            name = prefix + node.name
            functions.append(_Found(node, name, cls, outer))
            index = len(functions) - 1
            stack += [(child, name + ".", None, index) for child in reversed(node.body) if child.__class__ in _HOLDERS]
        elif isinstance(node, ast.ClassDef):
            name = prefix + node.name
            classes.append((node, name))
            stack += [(child, name + ".", name, outer) for child in reversed(node.body) if child.__class__ in _HOLDERS]
        elif node.__class__ in _BLOCKS:
            for body in ("finalbody", "orelse", "handlers", "cases", "body"):
                children: list[ast.stmt] = getattr(node, body, None) or []
                stack += [(child, prefix, cls, outer) for child in reversed(children) if child.__class__ in _HOLDERS]
    return functions, classes


def summarise_file(
    tree: ast.Module, names: Names, *, target: Target | None = None, copied: Copied | None = None
) -> FileValues:
    """Interpret every definition of a file on its own, but for those that ``copied`` knows. Never raises for any syntax
    tree."""
    chosen = target if target is not None else Target()
    module = names.module
    functions, classes = _definitions(tree)
    prefix = f"{module}." if module else ""
    top = _machine(names, "<module>", None, None, chosen, _FileOnly(frozenset(), frozenset(), frozenset()))
    variables = _variables(tree)
    outside = _FileOnly(
        frozenset(prefix + f.name for f in functions if f.cls is None and f.outer is None),
        frozenset(prefix + name for _, name in classes),
        frozenset(prefix + name for name in variables),
    )
    top.outside = outside
    table = run(top, tree)
    calls: dict[tuple[object, ...], None] = {}
    _calls(_coded(top), calls)
    found: list[tuple[object, ...]] = []
    tables: list[Table | None] = []
    attributes: dict[str, dict[str, tuple[list[Coded], list[Coded]]]] = {name: {} for _, name in classes}
    known = None if copied is None else Known(copied, names, outside, top.torchy)
    for function in functions:
        cls = prefix + function.cls if function.cls is not None else None
        place = Place(module, cls)
        stretch = None if known is None else known.stretch(function)
        said = None if known is None or stretch is None else known.said(function, stretch, place)
        if said is None:
            outer = tables[function.outer] if function.outer is not None else None
            m = _machine(names, function.name, cls, outer, chosen, outside, top.torchy)
            m.dotted, m.globals, m.instances = top.dotted, top.globals, top.instances
            tensors.longest[0] = 0
            inner = run(m, function.node)
            tables.append(inner)
            said = Said(_function(m, function), _attributes(inner) if cls is not None else (), _coded(m))
            if known is not None and stretch is not None:
                known.keep(function, stretch, place, said, m.asked, tensors.longest[0])
        else:
            tables.append(None)
        found.append((function.name, *said.function))
        if function.cls is not None:
            _assigned(attributes[function.cls], function.node.name, said.attributes)
        _calls(said.calls, calls)
    kept = tuple((name, encode(value)) for name, value in table.locals.items() if _worth_keeping(name, value))
    content: Any = (tuple(found), tuple(_classes(classes, top, names, attributes)), kept, tuple(calls))
    return FileValues(
        module,
        frozenset(last_name(str(call[0])) for call in calls),
        zlib.compress(marshal.dumps(content, _MARSHAL_VERSION), 1),
    )


class Known:
    """What functions of a file say that read as others do."""

    def __init__(self, copied: Copied, names: Names, outside: _FileOnly, torchy: bool) -> None:
        def kind(dotted: str) -> tuple[bool, bool, bool]:
            return outside.is_function(dotted), outside.is_class(dotted), outside.global_value(dotted) is not None

        self._copied = copied
        self._meanings = Meanings(names, kind)
        self._torchy = torchy

    def stretch(self, function: _Found) -> Stretch | None:
        """The lines of a function that may be a copy of another."""
        return None if function.outer is not None else self._copied.of(function.node, function.cls is not None)

    def said(self, function: _Found, stretch: Stretch, place: Place) -> Said | None:
        """What a function says, if that is known; else it gets the body that was left out of the tree."""
        copy = self._copied.copies.values.get((stretch.text, place.cls is not None))
        if copy is None or not holds(copy, place, self._torchy, self._meanings):
            self._copied.put_back(function.node)
            return None
        moved = Moved(copy.place, place)
        return Said(
            moved.said(copy.said),
            tuple([(name, moved.coded(value)) for name, value in copy.attributes]),
            [moved.call(call) for call in copy.calls],
        )

    def keep(self, function: _Found, stretch: Stretch, place: Place, said: Said, asked: set[str], longest: int) -> None:
        """Remember what a function says for those that read the same."""
        key = stretch.text, place.cls is not None
        if longest >= tensors.MAX_REFERENCE or not self._meanings.usable or key not in self._copied.copies.facts:
            return
        if function.cls is None or function.cls.partition(".")[0] not in asked:
            self._copied.copies.values[key] = ValuesCopy(place, self._torchy, *said, asked, self._meanings, longest)


def _machine(
    names: Names,
    qualname: str,
    cls: str | None,
    outer: Table | None,
    target: Target,
    outside: _FileOnly,
    torchy: bool | None = None,
) -> Machine:
    return Machine(
        names, outside, qualname=qualname, cls=cls, enclosing=outer, target=target, symbolic=True, torchy=torchy
    )


def _variables(tree: ast.Module) -> set[str]:
    """Names that module-level assignments bind, blocks included."""
    found: set[str] = set()
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(target.id for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            stack.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))
        elif isinstance(node, ast.ExceptHandler):
            stack.extend(node.body)
    return found


_SILENT = frozenset({Kind.CLASS, Kind.EXTERNAL, Kind.NONE})


def _worth_keeping(name: str, value: Value) -> bool:
    if value.kind in _SILENT:
        return False
    if value.kind is Kind.UNKNOWN:
        return value.cls is not None
    return not (value.kind is Kind.CALLABLE and value.cls is not None and value.cls.endswith("." + name))


def _function(m: Machine, function: _Found) -> tuple[object, ...]:
    """The fields of :class:`FunctionValues` behind the name."""
    node = function.node
    values = m.yielded or m.returned
    returns = tuple(dict.fromkeys(encode(v) for v in values if v.kind is not Kind.NONE))
    declared = annotated(m, node.returns)
    arguments = node.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    if m.self_name is not None or (function.cls is not None and _decorated(node, "classmethod")):
        positional = positional[1:]
    return (
        tuple(positional),
        returns[:MAX_RETURNS],
        None if declared == UNKNOWN else encode(declared),
        bool(m.yielded),
        _decorated(node, "property") or _decorated(node, "cached_property"),
    )


def _decorated(node: FunctionNode, name: str) -> bool:
    for decorator in node.decorator_list:
        short = decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", None)
        if short == name:
            return True
    return False


def _attributes(table: Table) -> tuple[tuple[str, Coded], ...]:
    return tuple(
        [
            (name, encode(value))
            for name, value in table.attributes.items()
            if value.kind is not Kind.UNKNOWN or value.cls is not None
        ]
    )


def _assigned(
    known: dict[str, tuple[list[Coded], list[Coded]]], method: str, attributes: Iterable[tuple[str, Coded]]
) -> None:
    for name, value in attributes:
        set_up, later = known.setdefault(name, ([], []))
        (set_up if method in _SET_UP else later).append(value)


def _classes(
    classes: list[tuple[ast.ClassDef, str]],
    top: Machine,
    names: Names,
    attributes: dict[str, dict[str, tuple[list[Coded], list[Coded]]]],
) -> Iterator[tuple[object, ...]]:
    for node, name in classes:
        bases = tuple(q for base in node.bases if (q := names.qualified(_unsubscripted(base))) is not None)
        assigned = attributes[name]
        level = top.class_attributes.get(name, {})
        merged: list[tuple[object, ...]] = []
        for attribute in dict.fromkeys((*assigned, *level)):
            set_up, later = assigned.get(attribute, ([], []))
            declared = level.get(attribute)
            if declared is not None and declared.kind in (Kind.CALLABLE, Kind.CLASS):
                declared = None
            if declared is None and not set_up and not later:
                continue
            coded = None if declared is None else encode(declared)
            merged.append((attribute, (tuple(set_up), tuple(dict.fromkeys(later)), coded)))
        yield name, bases, tuple(merged)


def _unsubscripted(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node


def _coded(m: Machine) -> list[Call]:
    """The calls that a machine has noted."""
    return [
        (callee, tuple([encode(v) for v in operands]), tuple([(name, encode(v)) for name, v in keywords.items()]))
        for callee, operands, keywords in m.calls
    ]


def _calls(noted: Iterable[Call], found: dict[tuple[object, ...], None]) -> None:
    """Take over calls, up to as many as are kept of a file."""
    for call in noted:
        if len(found) >= MAX_CALLS:
            return
        found[call] = None


def link_values(files: Iterable[FileValues], index: Index, *, target: Target | None = None) -> LinkedValues:
    """Put the summaries of all files together; the answers do not depend on the order of files or questions."""
    from awp_lint.detector.semantics.linking import LinkedValues

    return LinkedValues(files, index, target if target is not None else Target())
