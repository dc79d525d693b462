"""All code that runs below one step, and what of it stands in the way of a capture.

The walk follows every call into the project's functions, with the roles of the arguments. What it cannot see or does
not understand is an obstacle: a patch is made only where none is left.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from awp_lint.detector.semantics.definition import is_none
from awp_lint.detector.semantics.library.facts import lookup
from awp_lint.detector.semantics.model import FunctionModel
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import Region, Target
from awp_lint.patches.steploop.growing import growing_attributes, grows, length_read, only_when_empty, plain_attention
from awp_lint.patches.steploop.patterns import (
    called,
    counted,
    cut_to_length,
    guard,
    inside,
    loaded,
    masks,
    only_ends,
    opens,
    parameters,
    span,
)
from awp_lint.patches.steploop.project import Part, ProjectPart
from awp_lint.patches.steploop.repairs import Obstacle, Repair, RepairKind
from awp_lint.patches.steploop.roles import VIEWS, Role, Roles, worst
from awp_lint.rules.common import callee, short
from awp_lint.rules.flow import version
from awp_lint.rules.graphs.hostwork import Want, host_work

_MOST_FUNCTIONS = 300
_ASIDE = Region.TRAINING | Region.EXPORT | Region.DEBUG | Region.ERROR
_MUTATORS = frozenset({
    "append", "extend", "insert", "pop", "popleft", "appendleft", "clear", "setdefault", "update", "remove", "add",
})  # fmt: skip
_DRAWS = frozenset({"multinomial", "normal", "bernoulli"})
_OBJECTS = (Kind.SEQUENCE, Kind.MAPPING, Kind.STRING, Kind.SCALAR, Kind.NONE, Kind.CONFIG, Kind.DTYPE, Kind.DEVICE,
            Kind.ITERATOR)  # fmt: skip
_SOMETIMES = frozenset({"to", "cuda", "where"})  # wait with other arguments only, which the semantic model tells
_NO_NUMBERS = (ast.Slice, ast.Tuple, ast.List, ast.Starred)
_BUILTINS = frozenset({
    "len", "range", "zip", "enumerate", "list", "tuple", "dict", "set", "min", "max", "sum", "abs", "isinstance", "int",
    "float", "bool", "getattr", "hasattr", "super", "type", "reversed", "sorted", "any", "all", "str", "repr", "slice",
    "round", "map", "filter", "iter", "next", "divmod", "pow", "id", "callable",
})  # fmt: skip


class Closure:
    """The code below a step. After :meth:`enter`: ``obstacles``, ``repairs`` and what was seen of masks."""

    def __init__(self, project: ProjectPart, target: Target) -> None:
        self.project = project
        self.target = target
        self.obstacles: list[Obstacle] = []
        self.repairs: dict[int, Repair] = {}
        self.random = False
        self.entered: set[str] = set()  # path and qualified name of each function
        self.sliced_masks = 0  # masks cut to the length of the keys
        self.position_tests = 0  # comparisons of columns with positions
        self._seen: dict[tuple[str, tuple[tuple[str, Role], ...]], Role] = {}
        self._growing = growing_attributes(project)

    def enter(self, name: str, roles: Mapping[str, Role]) -> None:
        """Walk a function and what it calls. ``roles`` are those of its parameters; the others are OUTER."""
        self._visit(name, roles)
        self._read_elsewhere()
        opened = [repair for repair in self.repairs.values() if repair.kind is RepairKind.OPEN_END]
        if opened and not (self.sliced_masks and self.position_tests):
            for repair in opened:
                self._obstacle(
                    repair.node, repair.view, "reads a buffer up to the newest position, and no mask hides the rest"
                )

    def _obstacle(self, node: ast.AST, view: FunctionModel, text: str) -> None:
        found = Obstacle(
            view.path, getattr(node, "lineno", view.node.lineno if hasattr(view.node, "lineno") else 1), text
        )
        if found not in self.obstacles:
            self.obstacles.append(found)

    # functions -----------------------------------------------------------------------------------------------------

    def _visit(self, name: str, given: Mapping[str, Role]) -> Role:
        """Walk one function with these roles; the role of what it returns."""
        key = (name, tuple(sorted(given.items())))
        if key in self._seen:
            return self._seen[key]
        self._seen[key] = Role.FRESH  # of a recursion
        view, part = self.project.functions[name]
        if len(self._seen) > _MOST_FUNCTIONS:
            self._obstacle(view.node, view, "is more code than is looked at")
            return Role.FRESH
        self.entered.add(f"{view.path}:{view.qualname}")
        node = view.node
        if not isinstance(node, ast.FunctionDef):
            self._obstacle(node, view, f"`{view.qualname}` is no plain function")
            return Role.FRESH
        given = {arg.arg: Role.OUTER for arg in parameters(node)} | dict(given)
        returned: dict[int, Role] = {}
        calls = [call for call in view.nodes(ast.Call) if isinstance(call, ast.Call)]
        while True:  # roles of results are needed for the roles of arguments
            before = dict(returned)
            roles = Roles(view, given, returned)
            for call in calls:
                if not view.regions(call) & _ASIDE:
                    result = self._follow(call, view, roles)
                    if result is not None:
                        returned[id(call)] = max(result, returned.get(id(call), Role.FRESH))
            for read in view.nodes(ast.Attribute):
                assert isinstance(read, ast.Attribute)
                self._note_cache(read, view, roles, returned)
                getter = self._property(read, view)
                if getter is not None:
                    result = self._visit(getter, {"self": roles.of(read.value)})
                    returned[id(read)] = max(result, returned.get(id(read), Role.FRESH))
            if returned == before:
                break
        for inner in inside(node, view):
            if not view.regions(inner) & _ASIDE:
                self._check(inner, view, part, roles)
        results = [r.value for r in view.nodes(ast.Return) if isinstance(r, ast.Return) and r.value is not None]
        result = worst(map(roles.of, results))
        for call in calls:
            if returned.get(id(call)) is Role.GROWN and self._grown(call, view, part):
                result = Role.GROWN
        self._seen[key] = result
        return result

    def _follow(self, call: ast.Call, view: FunctionModel, roles: Roles) -> Role | None:
        """Walk what a call of the project runs; None where it runs nothing of the project."""
        names = [name for name in self._reached(call, view) if name in self.project.functions]
        found = []
        for name in names:
            target = self.project.functions[name][0]
            if not isinstance(target.node, ast.FunctionDef):
                continue
            given = self._arguments(call, target, view, roles)
            if given is None:
                self._obstacle(call, view, f"`{short(call, 50)}` passes arguments that cannot be followed")
                continue
            result = self._visit(name, given)
            found.append(Role.FRESH if name.endswith(".__init__") else result)
        return worst(found) if found else None

    # caches that grow ----------------------------------------------------------------------------------------------

    def _kept(self, node: ast.expr, view: FunctionModel) -> int | None:
        """The dimension in which an attribute of an object grows, None for what does not grow."""
        if not isinstance(node, ast.Attribute):
            return None
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        cls = view.class_name if own else view.value(node.value).cls
        return self._growing.get((cls or "", node.attr))

    def _note_cache(self, node: ast.Attribute, view: FunctionModel, roles: Roles, returned: dict[int, Role]) -> None:
        """Give reads of a growing attribute their roles: the tensor itself, and its length."""
        dim = self._kept(node, view)
        if dim is None or not isinstance(node.ctx, ast.Load) or roles.of(node.value) is not Role.GIVEN:
            return
        returned[id(node)] = Role.GROWN
        length = length_read(node, dim, view)
        if length is not None:
            returned[id(length)] = Role.MOVING

    def _cache_read(self, node: ast.Attribute, view: FunctionModel, part: Part) -> None:
        """A growing attribute is read: only what the patch knows how to serve is no obstacle."""
        dim = self._kept(node, view)
        parent = view.parent(node)
        length = None if dim is None else length_read(node, dim, view)
        if length is not None:
            self.repairs[id(length)] = Repair(RepairKind.LENGTH, length, view, part)
            return
        if isinstance(parent, ast.Compare) and all(is_none(side) for side in parent.comparators):
            return
        if isinstance(parent, ast.Return) or (
            isinstance(parent, ast.Tuple) and isinstance(view.parent(parent), ast.Return)
        ):
            return
        if grows(view.statement(node)) is not None:
            return
        self._obstacle(node, view, f"`{short(node, 40)}`, which grows, is used in a way that is not understood")

    def _read_elsewhere(self) -> None:
        """Code outside of the step that reads a cache's tensors would find them longer than they are filled."""
        grows = {r.view.class_name for r in self.repairs.values() if r.kind is RepairKind.GROW}
        names = {attribute: cls for cls, attribute in self._growing if cls in grows}
        for view, _ in self.project.functions.values() if names else ():
            if f"{view.path}:{view.qualname}" in self.entered:
                continue
            for read in view.nodes(ast.Attribute):
                assert isinstance(read, ast.Attribute)
                if read.attr not in names or not isinstance(read.ctx, ast.Load):
                    continue
                parent = view.parent(read)
                if isinstance(parent, ast.Call) and parent.func is read:
                    continue
                own = isinstance(read.value, ast.Name) and read.value.id == "self"
                cls = view.class_name if own else view.value(read.value).cls
                if cls is None or cls == names[read.attr]:
                    self._obstacle(read, view, f"`{short(read, 40)}`, which grows, is read outside of the step")

    def _grown(self, call: ast.Call, view: FunctionModel, part: Part) -> bool:
        """Follow the keys and values that a call returns to the attention; whether the function returns them."""
        statement = view.statement(call)
        if isinstance(statement, ast.Return):
            if statement.value is not call:
                self._obstacle(call, view, f"`{short(call, 40)}` is used in a way that is not understood")
            return True
        names = {
            part.id for part in ast.walk(statement) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
        if not (isinstance(statement, ast.Assign) and statement.value is call):
            self._obstacle(call, view, f"`{short(call, 40)}` is used in a way that is not understood")
            return False
        handed_on = False
        for use in (use for name in sorted(names) for use in view.uses(name)):
            found = version(use.id, use, view)
            if found.place == "after" and found.node is not statement:
                continue
            if found.place != "after":
                if use.lineno > statement.lineno:
                    self._obstacle(use, view, f"`{use.id}`, which grows, is used in a way that is not understood")
                continue
            parent = view.parent(use)
            if isinstance(parent, ast.keyword):
                parent = view.parent(parent)
            if isinstance(parent, ast.Call) and plain_attention(parent, use, view):
                self.repairs[id(parent)] = Repair(RepairKind.ATTEND, parent, view, part)
            elif isinstance(view.statement(use), ast.Return) and isinstance(parent, ast.Return | ast.Tuple):
                handed_on = True
            else:
                self._obstacle(use, view, f"`{use.id}`, which grows, goes elsewhere than into a plain attention")
        return handed_on

    def _reached(self, call: ast.Call, view: FunctionModel) -> tuple[str, ...]:
        reached = view.targets(call)
        if not reached and isinstance(call.func, ast.Attribute):
            name = view.qualified(call.func)  # methods with everyday names are not linked: ``cache.append``
            reached = (name,) if name in self.project.functions else ()
        return reached

    def _property(self, node: ast.Attribute, view: FunctionModel) -> str | None:
        """The project's property that an attribute read runs."""
        parent = view.parent(node)
        if (
            parent is None
            or not isinstance(node.ctx, ast.Load)
            or (isinstance(parent, ast.Call) and parent.func is node)
        ):
            return None
        name = view.qualified(node)
        if name is None or name not in self.project.functions:
            return None
        found = self.project.functions[name][0].node
        decorators = found.decorator_list if isinstance(found, ast.FunctionDef) else []
        return name if any("property" in ast.unparse(one) for one in decorators) else None

    def _arguments(
        self, call: ast.Call, target: FunctionModel, view: FunctionModel, roles: Roles
    ) -> dict[str, Role] | None:
        assert isinstance(target.node, ast.FunctionDef)
        names = [arg.arg for arg in (*target.node.args.posonlyargs, *target.node.args.args)]
        given: dict[str, Role] = {}
        static = any("staticmethod" in ast.unparse(d) for d in target.node.decorator_list)
        if target.class_name is not None and not static and names:
            receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
            first = names.pop(0)
            if target.qualname.endswith(".__init__"):
                given[first] = Role.FRESH
            elif target.qualname.endswith(".forward") or receiver is None:
                given[first] = roles.of(call.func)
            else:
                given[first] = roles.of(receiver)
        known = {*names, *(arg.arg for arg in target.node.args.kwonlyargs)}
        for index, passed in enumerate(call.args):
            if isinstance(passed, ast.Starred):
                if roles.of(passed) in (Role.MOVING, Role.INPUT):
                    return None
                for name in names[index:]:
                    given.setdefault(name, roles.of(passed))
                break
            if index < len(names):
                given[names[index]] = roles.of(passed)
        for keyword in call.keywords:
            if keyword.arg is None:
                return None
            if keyword.arg in known:
                given[keyword.arg] = roles.of(keyword.value)
        return given | dict.fromkeys(known - given.keys(), Role.FRESH)  # defaults

    # nodes ---------------------------------------------------------------------------------------------------------

    def _check(self, node: ast.AST, view: FunctionModel, part: Part, roles: Roles) -> None:
        if isinstance(node, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom | ast.Await | ast.Delete):
            self._obstacle(node, view, f"has a `{type(node).__name__.lower()}`, which a replay would not run")
            return
        for work in host_work(node, view):
            self._host(work.node, work.want, view, part, roles)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._store(target, view, roles)
        elif isinstance(node, ast.Call):
            self._call(node, view, roles)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and roles.of(node) is Role.GROWN:
            self._cache_read(node, view, part)
        elif isinstance(node, ast.With):
            for item in node.items:
                if not (view.qualified(called(item.context_expr)) or "").startswith("torch."):
                    self._obstacle(node, view, f"`with {short(item.context_expr, 40)}` is not understood")
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            ordered = all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops)
            if ordered and any(roles.of(side) is Role.POSITION for side in sides):
                self.position_tests += 1
        elif isinstance(node, ast.Subscript) and cut_to_length(node) and masks(node, view):
            self.sliced_masks += 1
        if isinstance(node, ast.expr) and not isinstance(node, _NO_NUMBERS) and loaded(node):
            self._moving(node, view, part, roles)

    def _host(self, node: ast.expr, want: Want, view: FunctionModel, part: Part, roles: Roles) -> None:
        statement = view.statement(node)
        if want is Want.READ and isinstance(statement, ast.Assign) and only_ends(statement, view, roles):
            self.repairs[id(statement)] = Repair(RepairKind.OPEN_END, statement, view, part)
            return
        if want is Want.UPLOAD and isinstance(node, ast.Call):
            made = node.func.value if isinstance(node.func, ast.Attribute) else node
            if isinstance(made, ast.Call) and counted(made, roles) is not None:
                self.repairs[id(made)] = Repair(RepairKind.POSITIONS, node, view, part)
                return
        self._obstacle(node, view, f"`{short(node, 50)}` {want.value}")

    def _part_of(self, view: FunctionModel) -> Part:
        return self.project.parts[view.path]

    def _store(self, target: ast.expr, view: FunctionModel, roles: Roles) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._store(part, view, roles)
        elif isinstance(target, ast.Attribute):
            if roles.of(target.value) is not Role.FRESH:
                statement = view.statement(target)
                cat = grows(statement)
                if self._kept(target, view) is not None and roles.of(target.value) is Role.GIVEN:
                    if cat is not None:
                        self.repairs[id(cat)] = Repair(RepairKind.GROW, cat, view, self._part_of(view))
                        return
                    if only_when_empty(target, view):
                        return
                joined = "cat(" in ast.unparse(view.statement(target))
                why = (
                    "grows by a copy, so its size changes at every step"
                    if joined
                    else "is written, which a replay would not do"
                )
                self._obstacle(target, view, f"`{short(target, 40)}` {why}")
        elif isinstance(target, ast.Subscript):
            self._write(target.value, target, view, roles)

    def _write(self, base: ast.expr, node: ast.expr, view: FunctionModel, roles: Roles) -> None:
        """Something is written into a container or a tensor."""
        role = roles.of(base)
        value = view.value(base)
        if role is Role.INPUT:
            self._obstacle(
                node, view, f"`{short(node, 40)}` writes into what the step is given, which is a copy in the graph"
            )
        elif role in (Role.OUTER, Role.GIVEN) and not value.is_tensor and value.kind is not Kind.UNKNOWN:
            self._obstacle(node, view, f"`{short(node, 40)}` writes into an object, which a replay would not do")

    def _call(self, call: ast.Call, view: FunctionModel, roles: Roles) -> None:
        name = callee(call)
        dotted = view.qualified(call.func) or ""
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if name.endswith("_") and not name.endswith("__") and receiver is not None:
            self._write(receiver, call, view, roles)
        if any(k.arg == "generator" and not is_none(k.value) for k in call.keywords):
            self._obstacle(call, view, f"`{short(call, 50)}` draws from a generator of its own")
        if name in _DRAWS and (dotted.startswith("torch.") or receiver is not None):
            self._obstacle(call, view, f"`{short(call, 50)}` checks its weights on the host")
        if name.startswith("rand") and dotted.startswith("torch."):
            self.random = True
        if any(reached in self.project.functions for reached in self._reached(call, view)):
            return
        if dotted.startswith("torch.distributed"):
            self._obstacle(call, view, f"`{short(call, 50)}` talks to other processes")
            return
        value = view.value(call.func)
        if value.kind is Kind.MODULE and (value.cls or "").startswith("torch.nn."):
            if value.cls == "torch.nn.Module":
                self._obstacle(call, view, f"`{short(call.func, 40)}` is a module whose code is not seen")
            return
        if value.kind is Kind.CLASS or dotted.startswith(
            ("torch.", "math.", "builtins.", "typing.", "einops.", "copy.")
        ):
            fact = lookup(dotted, self.target)
            waits = fact is not None and "wait" in fact.effects and not _spared(call, name, roles)
            if dotted.startswith("math."):
                waits = any(roles.is_tensor(arg) or roles.of(arg) is Role.POSITION for arg in call.args)
            if waits:
                self._obstacle(call, view, f"`{short(call, 50)}` waits for the device")
            return
        if isinstance(call.func, ast.Name):
            if dotted == "" and call.func.id in _BUILTINS:
                return
        elif receiver is not None:
            kind = view.value(receiver).kind
            if name in _MUTATORS and kind is not Kind.TENSOR:
                if roles.of(receiver) is not Role.FRESH:
                    self._obstacle(call, view, f"`{short(call, 50)}` changes an object, which a replay would not do")
                    return
                if kind in (Kind.SEQUENCE, Kind.MAPPING):
                    return
            if kind in _OBJECTS or name in ("_replace", "format", "join", "items", "keys", "values"):
                return
            fact = lookup(f"torch.Tensor.{name}", self.target)
            if fact is not None and "wait" in fact.effects and not _spared(call, name, roles):
                self._obstacle(call, view, f"`{short(call, 50)}` waits for the device")
                return
            if fact is not None or name in VIEWS:
                return
        self._obstacle(call, view, f"`{short(call.func, 50)}` is called, whose code is not seen")

    def _moving(self, node: ast.expr, view: FunctionModel, part: Part, roles: Roles) -> None:
        """A changing number: every use must be one that also a 0-d tensor can serve."""
        if roles.of(node) is not Role.MOVING:
            return
        parent = view.parent(node)
        plain = isinstance(parent, ast.expr) and not isinstance(parent, (ast.Call, *_NO_NUMBERS))
        if plain and isinstance(parent, ast.expr) and roles.of(parent) is Role.MOVING:
            return  # the larger expression is looked at
        if isinstance(parent, ast.keyword):
            parent = view.parent(parent)
        if isinstance(parent, ast.BinOp | ast.Compare) and roles.is_tensor(parent):
            return
        if isinstance(parent, ast.Call) and node is not parent.func:
            if any(reached in self.project.functions for reached in self._reached(parent, view)):
                return
            if counted(parent, roles) is not None:
                outer = view.parent(parent)
                moved = view.parent(outer) if isinstance(outer, ast.Attribute) and outer.attr == "to" else None
                whole = moved if isinstance(moved, ast.Call) and len(moved.args) == 1 else parent
                self.repairs.setdefault(id(parent), Repair(RepairKind.POSITIONS, whole, view, part))
                return
        if isinstance(node, ast.Name) and any(id(s) in self.repairs for s in view.assignments(node.id)):
            return  # mended where it is made
        if isinstance(parent, ast.Slice) and node is parent.upper and opens(parent, view, roles):
            self.repairs[id(parent)] = Repair(RepairKind.OPEN_END, parent, view, part)
            return
        if isinstance(parent, ast.Slice) and span(parent, view, roles) is not None:
            self.repairs[id(parent)] = Repair(RepairKind.SPAN, parent, view, part)
            return
        if isinstance(parent, ast.Assign | ast.AnnAssign | ast.Return):
            return  # its uses are looked at
        check = guard(node, view)
        if check is not None:
            self.repairs[id(check)] = Repair(RepairKind.GUARD, check, view, part)
            return
        self._obstacle(node, view, f"`{short(node, 40)}` changes at every step and is needed on the host")


def _spared(call: ast.Call, name: str, roles: Roles) -> bool:
    """Whether a call that may wait does not, as it is written here."""
    if name == "repeat_interleave":
        return bool(call.args) and not any(roles.is_tensor(arg) for arg in call.args[-1:])
    return name in _SOMETIMES
