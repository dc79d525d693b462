"""Both versions of a function on copies of the same real inputs, and what differs.

The original runs twice, which shows what equal code differs by; then the patched version, behind a delay on the device
so that a read that does not wait is found out. Random numbers, arguments and output of the program stay untouched: each
run has copies of its own, starts from the same random state, and may not touch the world.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any, Callable, NamedTuple

from awp_lint.detector.verification.agent.compare import (
    Difference,
    Rules,
    aliases,
    closer,
    differences,
    tensors_in,
)
from awp_lint.detector.verification.agent.copying import Copier, Uncopyable
from awp_lint.detector.verification.agent.device import Device
from awp_lint.detector.verification.agent.randoms import Randoms, drawn_from
from awp_lint.detector.verification.agent.world import Trial

_MORE = 4  # runs of the original once the patched version differs


class Allowed(NamedTuple):
    """What the patch declares that it may change: rounding, aliasing, the random stream, all positions but the last."""

    numerics: bool = False
    aliasing: bool = False
    rng: bool = False
    positions: bool = False


class Compared(NamedTuple):
    """The outcome of one call. ``unknown``: why nothing can be said of it, "" where something can.

    ``raised``: the patched version failed where the original did not, with what. ``seconds``: what it took.
    """

    found: list[Difference]
    unknown: str = ""
    raised: str = ""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


class _Ran(NamedTuple):
    value: Any
    error: Any
    inputs: Any
    drawn: Any
    stale: list[str]
    seconds: float


def compare(
    original: Callable[..., Any],
    patched: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: tuple[str, ...] = (),
    allowed: Allowed = Allowed(),  # noqa: B008 (immutable)
    device: Device | None = None,
) -> Compared:
    """Run both on copies of the inputs. Never raises, but for what is no :class:`Exception`."""
    began = perf_counter()
    try:
        found = _Call(args, kwargs, names, allowed, device or Device()).compare(original, patched)
    except Uncopyable as why:
        found = Compared([], str(why))
    except Exception as fault:
        found = Compared([], "the comparison failed: %s: %s" % (type(fault).__name__, fault))
    return found._replace(seconds=perf_counter() - began)


class _Call:
    def __init__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], names: tuple[str, ...], allowed: Allowed, device: Device
    ) -> None:
        self.inputs = _named(args, kwargs, names)
        self.count = len(args)
        self.allowed = allowed
        self.device = device
        self.room = device.room()

    def compare(self, original: Callable[..., Any], patched: Callable[..., Any]) -> Compared:
        self.random = Randoms(self.device)
        self.states = self.random.read()
        copies = [self._copy() for _ in range(3)]
        versions = self._versions()
        try:
            one, touched = self._run(original, copies[0])
            if touched:
                return Compared([], "it would %s" % touched)
            again, _ = self._run(original, copies[1])
            hosts = [t for _, t in tensors_in(one.value, "") if t.device.type == "cpu"]
            other, touched = self._run(patched, copies[2], hosts)
            if touched:
                return Compared([Difference("type", "the call", "the patched version would %s" % touched)])
            written = [name for name, (tensor, version) in versions.items() if _version(tensor) not in (version, None)]
            if written:
                return Compared([], "it writes to parameters (%s)" % ", ".join(written[:3]))
            judged = self._judge(original, one, again, other)
            if any(d.kind in ("value", "mutation") for d in judged.found) and self._wavers(original, one, again):
                return Compared([], "its own results change from run to run")
            return judged
        finally:
            self.random.restore(self.states)

    def _wavers(self, original: Callable[..., Any], one: _Ran, again: _Ran) -> bool:
        """Whether the original gives something else when it is run on: two runs may be equal by chance."""
        for _ in range(_MORE):
            more, touched = self._run(original, self._copy())
            if touched or more.error is not None:
                return True
            if differences(one.value, more.value, "result", Rules(self.allowed.numerics), again.value):
                return True
            if differences(one.inputs, more.inputs, "", Rules(self.allowed.numerics), again.inputs):
                return True
        return False

    def _copy(self, upcast: bool = False) -> dict[str, Any]:
        copier = Copier(self.room, upcast)
        copied: dict[str, Any] = copier.copy(self.inputs)
        self.parameters = copier.parameters
        return copied

    def _versions(self) -> dict[str, Any]:
        return {"parameter %d" % n: (p, _version(p)) for n, p in enumerate(self.parameters)}

    def _run(
        self, function: Callable[..., Any], inputs: dict[str, Any], hosts: list[Any] | None = None
    ) -> tuple[_Ran, str]:
        self.random.restore(self.states)
        values = list(inputs.values())
        args, kwargs = values[: self.count], dict(list(inputs.items())[self.count :])
        self.device.settle()
        if hosts is not None:
            self.device.delay(hosts)
        value = error = None
        began = perf_counter()
        with Trial() as trial:
            try:
                value = function(*args, **kwargs)
            except Exception as fault:
                error = fault
        seconds = perf_counter() - began
        stale: list[str] = []
        if hosts is not None and error is None:
            stale = self._stale(value)
        self.device.settle()
        drawn = self.random.read()
        if isinstance(error, Uncopyable):
            raise error
        if trial.touched:
            return _Ran(None, error, inputs, drawn, stale, seconds), str(trial.touched)
        if type(value).__name__ in ("generator", "coroutine", "async_generator"):
            raise Uncopyable("it returns a %s" % type(value).__name__)
        return _Ran(value, error, inputs, drawn, stale, seconds), ""

    def _stale(self, value: Any) -> list[str]:
        """Host tensors of the result that change once the device has caught up."""
        torch: Any = sys.modules.get("torch")
        if torch is None:
            return []
        hosts = [(p, t) for p, t in tensors_in(value, "result") if t.device.type == "cpu" and t.layout is torch.strided]
        early = [t.detach().clone() for _, t in hosts]
        self.device.settle()
        return [path for (path, late), before in zip(hosts, early) if not _same_bits(torch, before, late.detach())]

    def _judge(self, original: Callable[..., Any], one: _Ran, again: _Ran, other: _Ran) -> Compared:
        if one.error is not None or other.error is not None:
            return _raised(one.error, other.error)
        rules = Rules(self.allowed.numerics, positions=self.allowed.positions)
        found = [Difference("stale", path, "is read before it is there") for path in other.stale]
        found += differences(one.value, other.value, "result", rules, again.value)
        inside = differences(one.inputs, other.inputs, "", rules, again.inputs)
        found += [d if d.kind == "rng" else Difference("mutation", _path(d.where), d.text) for d in inside]
        found = self._by_reference(original, found, rules)
        if not self.allowed.aliasing:
            mine, theirs = aliases(one.value, one.inputs), aliases(other.value, other.inputs)
            for path in sorted(set(mine) | set(theirs)):
                if mine.get(path) != theirs.get(path) and not any(d.where == path for d in found):
                    text = "shares memory with %s instead of %s"
                    found.append(
                        Difference(
                            "alias", path,
                            text % (_path(theirs.get(path, "nothing")), _path(mine.get(path, "nothing"))),
                        )
                    )  # fmt: skip
        drawn = drawn_from(one.drawn, other.drawn)
        if drawn and not drawn_from(one.drawn, again.drawn) and not self.allowed.rng:
            found.append(Difference("rng", "the call", "random numbers are drawn differently from %s" % drawn))
        return Compared(found)

    def _by_reference(self, original: Callable[..., Any], found: list[Difference], rules: Rules) -> list[Difference]:
        """Drop value differences that a run in higher precision shows to be rounding."""
        if not rules.suspect or any(d.kind not in ("value", "mutation") for d in found):
            return found
        try:
            truth, touched = self._run(original, self._copy(upcast=True))
        except Uncopyable:
            return found
        if touched or truth.error is not None:
            return found
        exact = dict(tensors_in(truth.value, "result"))
        exact.update(tensors_in(truth.inputs, ""))
        fine = {_path(where) for where, a, b in rules.suspect if where in exact and closer(exact[where].detach(), a, b)}
        return [d for d in found if _path(d.where) not in fine]


def _raised(mine: Any, theirs: Any) -> Compared:
    if mine is not None and theirs is not None:
        if type(mine) is type(theirs):
            return Compared([])
        text = "%s instead of %s" % (type(theirs).__name__, type(mine).__name__)
        return Compared([Difference("raises", "the call", text)])
    if theirs is not None:
        words = "%s: %s" % (type(theirs).__name__, str(theirs).split("\n")[0][:160])
        return Compared([Difference("raises", "the call", words)], raised=words)
    return Compared([Difference("raises", "the call", "no %s any more" % type(mine).__name__)])


def _named(args: tuple[Any, ...], kwargs: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Arguments by name, positional ones first."""
    found = {(names[n] if n < len(names) else "argument %d" % n): value for n, value in enumerate(args)}
    found.update(kwargs)
    return found


def _path(where: str) -> str:
    """``['x'].keys`` → ``x.keys``."""
    if where.startswith("['"):
        name, _, rest = where[2:].partition("']")
        return name + rest
    return where


def _version(tensor: Any) -> Any:
    try:
        return tensor._version
    except Exception:  # an inference tensor has none
        return None


def _same_bits(torch: Any, one: Any, other: Any) -> bool:
    if one.is_floating_point():
        return bool(((one == other) | (torch.isnan(one) & torch.isnan(other))).all())
    return bool(torch.equal(one, other))
