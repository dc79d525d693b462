"""Settings of a model that its own configuration class leaves switched off.

``if self.config.reorder_and_upcast_attn:`` below a configuration whose field is ``False`` runs in no model that nobody
tuned. A *switch* is an attribute that a branch asks for: ``self.config.x``, ``config.x`` of a parameter, or ``self.x``
where the constructor put ``config.x`` there. What it is by default the configuration classes say that the file imports
or defines; they all have to agree. Of what the constructor's own parameters leave off, :mod:`.constructing` tells.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from awp_lint.detector.semantics.facts import UNKNOWN, Ref
from awp_lint.detector.semantics.index import Index

#: Fields whose default says nothing of models in use: roles of a model's parts, sizes, ids, what checkpoints fill in.
#: How many beams a search keeps is no size of a model, nor is how it searches.
VARIES = re.compile(
    r"_.*|is_decoder|is_encoder_decoder|add_cross_attention|use_cache|sliding_window|attention_chunk_size|dtype|training"
    r"|\w*(_ids?|_tokens?|_index|(?<!beam)_size|_dims?|_layers?|_heads|(?<!search)(?<!solver)(?<!decoding)(?<!sampling)_types?|_parameters|_config|_scaling)|num_\w+|n_\w+"
    r"|\w*(return_dict|hidden_act|vocab|norm\w*|architecture|attention_type)|relative_\w+|pos_att\w*"
)

#: … of a configuration's alone, which checkpoints come with: a constructor that nobody passes one has its default.
_OF_CHECKPOINTS = re.compile(r"\w*_bias")


#: Between the names, and the states, of switches of which one decides.
EITHER = "\n"
#: Between the words of which a setting has to be one.
ONE_OF = "|"
#: Before the name of a class: the state of an attribute that is no instance of it.
ANOTHER = "another than "


def switch(node: ast.expr) -> str | None:
    """The name of the setting that an expression reads: ``self.x``, ``self.config.x``, ``config.x``, and the same asked
    by ``getattr``, with what it gives where there is no such field: ``self.config.x|False``."""
    kind = type(node)
    if kind is ast.Attribute:
        holder, name, default = node.value, node.attr, ""  # type: ignore[attr-defined]
    elif kind is ast.Call:
        asked = _asked(node)  # type: ignore[arg-type]
        if asked is None:
            return None
        holder, name, default = asked
    else:
        return None
    if VARIES.fullmatch(name):
        return None
    if type(holder) is ast.Name and holder.id == "self":
        return f"self.{name}{default}"
    if _OF_CHECKPOINTS.fullmatch(name):
        return None
    if type(holder) is ast.Name:
        return f"config.{name}{default}" if holder.id == "config" else None
    if type(holder) is ast.Attribute and holder.attr == "config":
        inner = holder.value
        if type(inner) is ast.Name and inner.id == "self":
            return f"self.config.{name}{default}"
    return None


def _asked(node: ast.Call) -> tuple[ast.expr, str, str] | None:
    """Holder, name and ``|default`` of ``getattr(holder, "name", default)``."""
    if type(node.func) is not ast.Name or node.func.id != "getattr" or len(node.args) != 3:
        return None
    holder, name, default = node.args
    if type(name) is not ast.Constant or type(name.value) is not str or type(default) is not ast.Constant:
        return None
    return holder, name.value, f"|{default.value!r}"


def default_of(node: ast.expr | None) -> str:
    """The text of a constant that is a default; the empty string for everything else."""
    if type(node) is ast.UnaryOp and type(node.op) is ast.USub:
        inner = default_of(node.operand)
        return f"-{inner}" if inner else ""
    return repr(node.value) if type(node) is ast.Constant else ""


_COMPARISON = re.compile(r"([=!<>]=|[<>])(.*)", re.DOTALL)
_FALSE = frozenset(("None", "False", "0", "0.0", "''", "()"))


def switched_off(state: str, default: str) -> bool:
    """Whether a branch that needs a setting in this state does not run where it has its default."""
    if not default or state.startswith(ANOTHER):
        return False
    if state[:1] in "=!<>":
        return not _holds(state, default)
    if state in ("true", "false"):
        return (default in _FALSE) is (state == "true")
    return (default == "None") is (state == "given")


def _holds(comparison: str, default: str) -> bool:
    """Whether ``>=0`` and the like may hold of a default."""
    operator, wanted = _COMPARISON.findall(comparison)[0]
    if operator in ("==", "!="):
        return (default in wanted.split(ONE_OF)) is (operator == "==")
    try:
        left, right = float(default), float(wanted)
    except ValueError:
        return True
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]


class Switches:
    """What the configuration classes of a project say."""

    def __init__(
        self, index: Index, made_with: Callable[[int, str], frozenset[str]] = lambda cls, attribute: frozenset()
    ) -> None:
        """``made_with`` gives the constants that an attribute of a class's objects is made with, if only constants."""
        self._index = index
        self._made_with = made_with
        self._of_file: dict[int, dict[str, list[str]]] = {}
        self._of_class: dict[int, dict[str, str]] = {}
        self._behind: dict[tuple[int, str], str | None] = {}

    def off(self, gid: int, name: str, state: str) -> bool:
        """Whether a part of a function that needs a setting in a state never runs by default."""
        if EITHER in name:
            return all(self.off(gid, *each) for each in zip(name.split(EITHER), state.split(EITHER), strict=True))
        name, _, otherwise = name.partition("|")
        holder, _, field = name.rpartition(".")
        known: str | None = field
        if holder == "self":
            cls = self._index.class_of(gid)
            if state.startswith(ANOTHER):
                return cls is not None and self._declared(cls, field) == state[len(ANOTHER) :]
            known = None if cls is None else self._field(cls, field)
            if cls is not None and known is None:
                made = self._made_with(cls, field)
                return bool(made) and all(switched_off(state, default) for default in made)
        if known is None:
            return False
        defaults = self._defaults(self._index.function_file[gid]).get(known)
        if defaults is None and otherwise and self._defaults(self._index.function_file[gid]):
            defaults = [otherwise]  # no configuration has the field
        return defaults is not None and all(switched_off(state, default) for default in defaults)

    def _declared(self, cls: int, attribute: str) -> str | None:
        """The one class that constructors declare for the parameter from which an attribute was made."""
        found: set[str | None] = set()
        for current in self._index.mro(cls):
            fact = self._index.classes[current]
            first = self._index.first_function[self._index.class_file[current]]
            for name, number, ref in fact.attributes:
                if name == attribute and type(ref) is tuple and ref[0] == "p":
                    declared = dict(self._index.functions[first + number].annotations).get(str(ref[2]))
                    made = declared[1] if type(declared) is tuple and declared[0] == "()" else None
                    found.add(made.rpartition(".")[2] if type(made) is str else None)
        return found.pop() if len(found) == 1 else None

    def defaults(self, file: int, field: str) -> tuple[str, ...]:
        """The texts of a field's defaults in the configuration classes that a file imports or defines."""
        return tuple(self._defaults(file).get(field, ()))

    def _field(self, cls: int, attribute: str) -> str | None:
        """The field of the configuration that an attribute of an object was made from."""
        key = cls, attribute
        if key not in self._behind:
            self._behind[key] = self._looked_up(cls, attribute)
        return self._behind[key]

    def _looked_up(self, cls: int, attribute: str) -> str | None:
        found: set[str | None] = set()
        for current in self._index.mro(cls):
            fact = self._index.classes[current]
            found.update(_of_config(ref) for name, _, ref in fact.attributes if name == attribute and ref != UNKNOWN)
            first = self._index.first_function[self._index.class_file[current]]
            for method, number in fact.methods:
                if method != "__init__" and attribute in self._index.functions[first + number].writes:
                    return None
        field = next(iter(found)) if len(found) == 1 else None
        return None if field is None or VARIES.fullmatch(field) or _OF_CHECKPOINTS.fullmatch(field) else field

    def _defaults(self, file: int) -> dict[str, list[str]]:
        known = self._of_file.get(file)
        if known is None:
            known = self._of_file[file] = {}
            for cls in sorted(self._configurations(file)):
                for name, default in self._fields(cls).items():
                    known.setdefault(name, []).append(default)
        return known

    def _configurations(self, file: int) -> set[int]:
        """The configuration classes that a file imports or defines."""
        first = self._index.first_class[file]
        facts = self._index.files[file].facts
        found = {first + n for n, fact in enumerate(facts.classes) if fact.qualname.endswith("Config")}
        for fact in facts.imports:
            if fact.bound.endswith("Config"):
                entity = self._index.member(file, fact.bound)
                if entity is not None and entity.kind == "class":
                    found.add(entity.number)
        return found

    def _fields(self, cls: int) -> dict[str, str]:
        """The fields of a configuration class with the texts of their defaults, those that it inherits included."""
        known = self._of_class.get(cls)
        if known is not None:
            return known
        known = self._of_class[cls] = {}
        for current in reversed(self._index.mro(cls)):
            fact = self._index.classes[current]
            first = self._index.first_function[self._index.class_file[current]]
            known.update(fact.defaults)
            for method, number in fact.methods:
                function = self._index.functions[first + number]
                if method == "__init__":
                    known.update(
                        (name, code if code in ("None", "True", "False") else "") for name, code in function.defaults
                    )
                else:  # what is worked out of others after the object was made
                    known.update((name, "") for name in function.writes)
        return known


def _of_config(ref: Ref) -> str | None:
    """``x`` of ``config.x``, a parameter's."""
    if isinstance(ref, tuple) and ref[0] == "." and isinstance(ref[1], tuple):
        base = ref[1]
        if base[0] == "p" and str(base[2]).endswith("config"):
            return str(ref[2])
    return None
