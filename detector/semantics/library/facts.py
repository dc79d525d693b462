"""Facts about library functions, read from the ``*.facts`` tables next to this module.

A table is plain text, one fact a line::

    [torch torch.Tensor | launch alloc]
    nonzero    like.int/2    wait shape-read

A section names the prefixes that the lines below hold for and, after ``|``, the effects that they all have. A line is a
name, the result and the effects. The result is ``rule[.dtype][/rank][:class]`` (:data:`RULES` lists the rules), the
effects are words of :data:`EFFECTS`, ``wait?condition`` for a wait that depends on the arguments, and the versions of
the library: ``since=2.4``, ``until=2.6`` (exclusive).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from awp_lint.detector.semantics.values import DTypeClass
from awp_lint.detector.semantics.view import Target

RULES: dict[str, str] = {
    "unknown": "nothing is known",
    "same": "a tensor like the first operand: device, dtype and rank",
    "like": "a tensor on the device of its operands, dtype promoted, rank unknown",
    "reduce": "like the first operand; 0-d without a dimension, else one dimension less",
    "extreme": "as reduce; with a dimension a pair of values and int indices",
    "pair": "a pair: like the first operand, and int indices of the same rank",
    "twin": "two tensors like the first operand",
    "recurrent": "a tensor like the first operand, and its state",
    "ambient": "a tensor where the model is",
    "list": "a sequence of tensors like the first operand",
    "rows": "a sequence of tensors of one dimension less",
    "make": "a new tensor, on `device=` or the default device",
    "makelike": "a new tensor like the first operand, on `device=` if given",
    "data": "a new tensor from Python or NumPy data, on `device=` or the default device",
    "view": "as same, another rank",
    "squeeze": "as same, rank less one if known",
    "unsqueeze": "as same, rank plus one if known",
    "cast": "as same, another dtype",
    "typeas": "as the first operand, device and dtype of the argument",
    "catlike": "tensors of the first argument, joined along a dimension",
    "stack": "as catlike, one dimension more",
    "move": "Tensor.to, Module.to: device and dtype by the arguments",
    "cuda": "as same, on the accelerator",
    "host": "as same, on the host",
    "where": "like; with one argument a sequence of index tensors",
    "index": "index_select, gather, take: like the first operand",
    "receiver": "the receiver itself",
    "first": "the first argument itself",
    "element": "an item of the first argument",
    "embeddings": "a NumPy array, or with `convert_to_tensor=` a tensor where the model is",
    "ndarray": "a NumPy array",
    "scalar": "a Python number",
    "size": "an int with a dimension, else ints",
    "string": "a str",
    "none": "None",
    "parameter": "the first argument as part of a module: moves with it",
    "range": "range(): items are ints",
    "sum": "sum(): a tensor where the items are tensors",
    "choose": "max(), min(): an argument, or an item of the only one",
    "listof": "a sequence of the first argument's items",
    "sequence": "a list or tuple of unknown items",
    "scalars": "a list or tuple of Python numbers",
    "strings": "a list of str",
    "mapping": "a dict",
    "iterator": "an iterator over the first argument's items",
    "device": "a torch.device",
    "dtype": "a torch.dtype",
    "instance": "an object of the class named after the colon",
    "module": "an nn.Module of the class named after the colon",
    "generator": "a torch.Generator",
    "stream": "a CUDA stream or event",
    "output": "a model output: attributes are tensors where the model is",
    "tokens": "a tensor of token ids where the model is",
    "tokenizer": "a tokenizer or processor",
    "encoding": "a tokenizer's output",
    "config": "a configuration",
    "class": "the class named after the colon",
}

EFFECTS = frozenset(
    {"wait", "d2h", "h2d", "d2d", "alloc", "launch", "view", "inplace", "loads", "blocks", "collective", "random"}
)

Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Result:
    """What a call returns: a rule of :data:`RULES` with what is fixed about dtype, rank and class."""

    rule: str
    dtype: DTypeClass | None = None
    rank: int | None = None
    cls: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """One library function or method. ``waits`` holds for operands on the accelerator."""

    name: str
    result: Result
    effects: frozenset[str]
    wait_condition: str | None = None  # the wait happens only then; a word that the rules know
    since: Version | None = None
    until: Version | None = None
    calls_back: tuple[str, ...] = ()  # methods of the user's objects that it runs

    @property
    def waits(self) -> bool:
        """The host may block on the device (always, or under :attr:`wait_condition`)."""
        return "wait" in self.effects

    @property
    def always_waits(self) -> bool:
        """The host blocks on the device whatever the arguments are."""
        return "wait" in self.effects and self.wait_condition is None

    @property
    def copies(self) -> bool:
        """Bytes cross between host and device."""
        return bool(self.effects & {"d2h", "h2d"})

    @property
    def allocates(self) -> bool:
        """Makes a new tensor."""
        return "alloc" in self.effects and "view" not in self.effects and "inplace" not in self.effects

    @property
    def launches(self) -> bool:
        """Starts device work."""
        return "launch" in self.effects and "view" not in self.effects

    @property
    def is_view(self) -> bool:
        """The result shares memory with the first operand."""
        return "view" in self.effects

    @property
    def in_place(self) -> bool:
        """Writes into its first operand."""
        return "inplace" in self.effects

    def holds(self, version: Version | None) -> bool:
        """Whether the fact is true of this version of the library; None is the newest."""
        if version is None:
            return self.until is None
        return (self.since is None or version >= self.since) and (self.until is None or version < self.until)


class FactError(ValueError):
    """A line of a table that cannot be read."""


def _version(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor)


@functools.cache
def parse_result(text: str) -> Result:
    """Read ``rule[.dtype][/rank][:class]``. Raises :class:`FactError`."""
    body, _, cls = text.partition(":")
    body, _, rank = body.partition("/")
    rule, _, dtype = body.partition(".")
    if rule not in RULES:
        raise FactError(f"no such result rule: {rule}")
    return Result(rule, DTypeClass(dtype) if dtype else None, int(rank) if rank else None, cls or None)


def parse(text: str) -> Iterator[Fact]:
    """The facts of a table. Raises :class:`FactError`, naming the line."""
    prefixes: list[str] = []
    common: frozenset[str] = frozenset()
    for number, line in enumerate(text.split("\n"), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        if line.startswith("["):
            head, _, effects = line.strip("[]").partition("|")
            prefixes = head.split()
            common = frozenset(effects.split())
            continue
        name, *rest = line.split()
        if not rest:
            raise FactError(f"line {number}: {name} has no result")
        effects_of = set(common)
        condition = None
        since = until = None
        calls_back: tuple[str, ...] = ()
        for word in rest[1:]:
            if word in EFFECTS:
                effects_of.add(word)
            elif word.startswith("wait?"):
                effects_of.add("wait")
                condition = word[5:]
            elif word.startswith("since="):
                since = _version(word[6:])
            elif word.startswith("until="):
                until = _version(word[6:])
            elif word.startswith("calls="):
                calls_back = tuple(word[6:].split(","))
            elif word.startswith("-"):
                effects_of.discard(word[1:])
            else:
                raise FactError(f"line {number}: no such effect: {word}")
        try:
            result = parse_result(rest[0])
        except ValueError as error:
            raise FactError(f"line {number}: {error}") from None
        shared = frozenset(effects_of)
        for prefix in prefixes:
            yield Fact(f"{prefix}.{name}", result, shared, condition, since, until, calls_back)


@functools.cache
def table() -> dict[str, tuple[Fact, ...]]:
    """All facts by dotted name; several where they hold for different versions."""
    found: dict[str, tuple[Fact, ...]] = {}
    for path in sorted(Path(__file__).parent.glob("*.facts")):
        for fact in parse(path.read_text(encoding="utf-8")):
            found[fact.name] = (*found.get(fact.name, ()), fact)
    return found


@functools.cache
def last_names(effect: str) -> frozenset[str]:
    """The last names of all functions and methods that have an effect."""
    found = (fact for facts in table().values() for fact in facts)
    return frozenset(fact.name.rpartition(".")[2] for fact in found if effect in fact.effects)


def lookup(dotted: str, target: Target | None = None) -> Fact | None:
    """What is known of a library function or method, for the target's versions; None when nothing is."""
    facts = table().get(dotted)
    if facts is None:
        return None
    if len(facts) == 1 and facts[0].since is None and facts[0].until is None:
        return facts[0]
    version: Version | None = None
    if target is not None:
        root = dotted.partition(".")[0]
        version = target.torch if root == "torch" else target.transformers if root == "transformers" else None
    for fact in facts:
        if fact.holds(version):
            return fact
    return None
