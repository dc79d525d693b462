"""Finding the rules: every ``awpNNN`` module of every family package holds one class."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from collections.abc import Iterable, Iterator
from functools import cache

from awp_lint.rules.base import Rule

_MODULE = re.compile(r"awp\d{3}$")


@cache
def all_rules() -> tuple[Rule, ...]:
    """One instance of each rule, by id. Imports no LibCST."""
    found: dict[str, Rule] = {}
    for name in _modules():
        module = importlib.import_module(name)
        for item in vars(module).values():
            if isinstance(item, type) and issubclass(item, Rule) and item.__module__ == module.__name__:
                if item.id in found:
                    raise RuntimeError(f"{item.id} is defined twice")
                found[item.id] = item()
    return tuple(found[key] for key in sorted(found))


def rule_ids() -> tuple[str, ...]:
    """The ids of all rules, told from the names of their modules: loading them would take half of a cached scan."""
    return tuple(sorted(name.rpartition(".")[2].upper() for name in _modules()))


def _modules() -> Iterator[str]:
    """Dotted names of the modules that hold a rule each."""
    import awp_lint.rules

    for folder in awp_lint.rules.__path__:
        for family in pkgutil.iter_modules([folder]):
            if family.ispkg:
                for entry in pkgutil.iter_modules([os.path.join(folder, family.name)]):
                    if _MODULE.match(entry.name):
                        yield f"awp_lint.rules.{family.name}.{entry.name}"


def rule(rule_id: str) -> Rule | None:
    """The rule with this id (any case), or None."""
    wanted = rule_id.upper()
    return next((item for item in all_rules() if item.id == wanted), None)


def select(
    chosen: Iterable[str] = ("AWP",), ignored: Iterable[str] = (), extended: Iterable[str] = ()
) -> tuple[Rule, ...]:
    """The rules whose id starts with one of the chosen prefixes; between prefixes the longer one wins."""
    wanted, unwanted = {*map(str.upper, chosen), *map(str.upper, extended)}, set(map(str.upper, ignored))
    result = []
    for item in all_rules():
        pro = max((len(p) for p in wanted if item.id.startswith(p)), default=0)
        con = max((len(p) for p in unwanted if item.id.startswith(p)), default=0)
        if pro > con:
            result.append(item)
    return tuple(result)


def unknown_prefixes(prefixes: Iterable[str]) -> tuple[str, ...]:
    """Those prefixes that select no rule at all, for a clear message."""
    return tuple(p for p in prefixes if not any(item.id.startswith(p.upper()) for item in all_rules()))


def screening_words(rules: Iterable[Rule]) -> frozenset[bytes]:
    """The byte strings of which a file must hold at least one to be worth running the rules on."""
    return frozenset(word for item in rules for word in item.words)
