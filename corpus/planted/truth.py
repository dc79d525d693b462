"""Times a program's planted statements with its own timer: no profiler, no marks, nothing of the linter.

The program's source is compiled a second time with a timer around each planted place; places are given in
``truth.json`` by function, by the text of the statement and, for calls, of the call. Three runs: plain (time per step),
timed, and timed with the device drained first, which splits each place into the wait that was pending and the rest.
"""

from __future__ import annotations

import ast
import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from common import BETWEEN, REQUEST_SECONDS, Options, Served

TRUTH = Path(__file__).resolve().with_name("truth.json")


@dataclass(frozen=True)
class Plant:
    """A planted place and what one execution of it does on a GPU; None where the number is the library's business.

    ``per_step`` and ``per_request`` say how often it runs. ``kernels`` and ``copies`` are what is launched inside;
    bytes are per execution. ``covers``: "call" is the call without its arguments, "statement" a statement or the header
    of a compound one, "loop" a loop with its body, "iteration" one turn of the loop that counts the steps.
    """

    id: str
    rule: str
    function: str
    code: str
    covers: str
    per_step: float
    per_request: float
    call: str = ""
    accepts: tuple[str, ...] = ()  # rules that may stand for its own
    kernels: int | None = None
    copies: int | None = None
    h2d: int | None = None
    d2h: int | None = None


def plants(program: Path) -> list[Plant]:
    """The planted places of a program."""
    entry = json.loads(TRUTH.read_text(encoding="utf-8"))[program.stem]
    steps = entry["steps_per_request"]
    found = []
    for number, plant in enumerate(entry["plants"]):
        per_step = plant.pop("per_step", None)
        if per_step is None:
            per_step = plant["per_request"] / steps
        plant.setdefault("per_request", per_step * steps)
        found.append(Plant(id=f"{program.stem}-{number + 1}", per_step=per_step, **plant))
    return found


def same(text: str) -> str:
    """Source text without the differences that formatting makes."""
    return ast.unparse(ast.parse(text))


def locate(tree: ast.Module, plant: Plant) -> tuple[ast.stmt, ast.Call | None]:
    """The statement of a plant and, if it is one, its call. Raises ValueError unless each is there exactly once."""
    function = _function(tree, plant.function)
    wanted = plant.code.strip()
    header = wanted.endswith(":")
    matches = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.stmt)
        and hasattr(node, "body") is header
        and (_header(node) if header else ast.unparse(node)) == (wanted if header else same(wanted))
    ]
    if len(matches) != 1:
        raise ValueError(f"{plant.id}: {plant.code!r} stands {len(matches)} times in {plant.function}")
    if not plant.call:
        return matches[0], None
    calls = [
        node for node in ast.walk(matches[0]) if isinstance(node, ast.Call) and ast.unparse(node) == same(plant.call)
    ]
    if len(calls) != 1:
        raise ValueError(f"{plant.id}: {plant.call!r} stands {len(calls)} times in the statement")
    return matches[0], calls[0]


def _function(tree: ast.Module, dotted: str) -> ast.FunctionDef:
    body: list[ast.stmt] = tree.body
    node: ast.AST | None = None
    for name in dotted.split("."):
        node = next((n for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == name), None)
        if node is None:
            raise ValueError(f"no function {dotted}")
        body = node.body
    assert isinstance(node, ast.FunctionDef)
    return node


def _header(node: ast.AST) -> str:
    """The first line of a compound statement as it is unparsed."""
    return ast.unparse(node).split("\n", 1)[0]


class _Timers(ast.NodeTransformer):
    """Puts timers around places: ``_open(n)`` and ``_close(n)`` around statements, ``_call(n, f, …)`` for calls."""

    def __init__(self, tree: ast.Module, planted: list[Plant]) -> None:
        self.statements: dict[ast.stmt, list[tuple[int, str]]] = {}
        self.calls: dict[ast.Call, int] = {}
        for number, plant in enumerate(planted):
            statement, call = locate(tree, plant)
            if plant.covers == "call":
                assert call is not None, plant.id
                self.calls[call] = number
            else:
                self.statements.setdefault(statement, []).append((number, plant.covers))

    def visit(self, node: ast.AST) -> Any:
        timed = self.statements.get(node, []) if isinstance(node, ast.stmt) else []
        number = self.calls.get(node) if isinstance(node, ast.Call) else None
        self.generic_visit(node)
        if number is not None:
            assert isinstance(node, ast.Call)
            return ast.copy_location(_name_call("_call", number, node.func, *node.args, keywords=node.keywords), node)
        if not timed:
            return node
        assert isinstance(node, ast.stmt)
        around: list[ast.stmt] = [node]
        for index, covers in timed:
            if covers == "statement" and isinstance(node, ast.If | ast.While):
                # a tensor is asked for its truth by the statement, after its expression: the wait belongs to it
                truth = ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), node.test))
                node.test = ast.copy_location(_name_call("_value", index, _name_call("_open", index), truth), node.test)
            elif covers == "statement" and isinstance(node, ast.Return):
                assert node.value is not None
                node.value = ast.copy_location(
                    _name_call("_value", index, _name_call("_open", index), node.value), node.value
                )
            else:
                opening, closing = ast.Expr(_name_call("_open", index)), ast.Expr(_name_call("_close", index))
                around = [ast.copy_location(opening, node), *around, ast.copy_location(closing, node)]
        return around


def _name_call(name: str, number: int, *args: ast.expr, keywords: list[ast.keyword] | None = None) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(number), *args], keywords or [])


def timed_tree(program: Path, planted: list[Plant]) -> ast.Module:
    """The program with timers; line numbers stay."""
    tree = ast.parse(program.read_text(encoding="utf-8"))
    timed: ast.Module = ast.fix_missing_locations(_Timers(tree, planted).visit(tree))
    return timed


class Clock:
    """Collects the durations; ``drain`` makes the device finish before each place, and times that apart."""

    def __init__(self, count: int, drain: Callable[[], None] | None = None) -> None:
        self.spent: list[list[int]] = [[] for _ in range(count)]
        self.begun: list[list[int]] = [[] for _ in range(count)]  # when, by ``time.perf_counter_ns``
        self.waited: list[list[int]] = [[] for _ in range(count)]
        self._drain = drain
        self._started = [0] * count

    def open(self, number: int) -> None:
        if self._drain is not None:
            before = time.perf_counter_ns()
            self._drain()
            self.waited[number].append(time.perf_counter_ns() - before)
        self._started[number] = time.perf_counter_ns()

    def close(self, number: int) -> None:
        self.spent[number].append(time.perf_counter_ns() - self._started[number])
        self.begun[number].append(self._started[number])

    def value(self, number: int, _opened: None, value: Any) -> Any:
        self.close(number)
        return value

    def call(self, number: int, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.open(number)
        result = function(*args, **kwargs)
        self.close(number)
        return result

    def reset(self) -> None:
        for rows in (*self.spent, *self.begun, *self.waited):
            rows.clear()

    def names(self) -> dict[str, Any]:
        return {"_open": self.open, "_close": self.close, "_value": self.value, "_call": self.call}


def summary(nanoseconds: Sequence[float], turns: float = 1.0) -> dict[str, float] | None:
    """Milliseconds a turn: mean, median, and the mean without the largest and smallest tenth."""
    if not nanoseconds:
        return None
    ordered = sorted(value / 1e6 / turns for value in nanoseconds)
    cut = len(ordered) // 10
    inner = ordered[cut : len(ordered) - cut] or ordered
    return {"mean": statistics.fmean(ordered), "median": statistics.median(ordered), "trimmed": statistics.fmean(inner)}


def print_truth(program: str, options: Options) -> None:
    """Measure a program and print the result as JSON."""
    print(json.dumps(measure(Path(program).resolve(), options), indent=1))


def measure_around(program: str, serve: Callable[[Options], Served], options: Options) -> None:
    """Measure a program, serve for a profile run, then serve and time in turns, request by request, for more of them.

    Processes of equal code differ by up to a quarter on a shared host, and one process's pace changes within seconds:
    what is compared has to stand side by side. Writes ``before.json`` into the folder and serves until there is
    ``counted``; then, once there is ``profiled-0.json`` with the stretches that count, ``timed-0.json`` (ms of each
    planted place), and so on until there is ``done``.
    """
    folder = options.around
    assert folder is not None
    path = Path(program).resolve()
    brief = Options(options.device, options.size, 0.5)
    _keep(folder / "before.json", measure(path, Options(options.device, options.size, options.seconds)))
    while not (folder / "counted").exists():
        serve(brief)
    beside = Beside(path, options)
    BETWEEN.append(beside.request)
    turn = 0
    while not (folder / "done").exists():
        profiled = folder / f"profiled-{turn}.json"
        if profiled.exists():
            _keep(folder / f"timed-{turn}.json", beside.taken(json.loads(profiled.read_text(encoding="utf-8"))))
            turn += 1
        serve(brief)


class Beside:
    """A second copy of a program, with timers, that does a request when it is asked to.

    Its code has a file name of its own, so that no profile run sees a mark in it. Of its times those count that lie in
    the stretches that the profile run's own times are of: then both copies ran at the same pace.
    """

    def __init__(self, program: Path, options: Options) -> None:
        self._planted = plants(program)
        self._clock = Clock(len(self._planted))
        self._requests = timed_requests(program, self._planted, self._clock, options)
        self._own_ns = own_ns(self._clock)

    def request(self) -> None:
        """One request."""
        next(self._requests)

    def taken(self, stretches: list[tuple[int, int]]) -> list[dict[str, float] | None]:
        """Milliseconds of an execution of each place since the last time, less the timer's own cost. ``stretches``
        are beginnings and ends, ``time.time_ns()``."""
        behind = time.time_ns() - time.perf_counter_ns()
        found = []
        for plant, begun, spent in zip(self._planted, self._clock.begun, self._clock.spent, strict=True):
            own = self._own_ns[plant.covers == "call"]
            inside = [
                took - own
                for at, took in zip(begun, spent, strict=True)
                if any(start <= at + behind and at + behind + took <= end for start, end in stretches)
            ]
            found.append(summary(inside, turns_of(plant)))
        self._clock.reset()
        return found


def timed_requests(program: Path, planted: list[Plant], clock: Clock, options: Options) -> Iterator[None]:
    """The requests of a copy of a program with timers, one whenever the next is asked for."""
    tree = timed_tree(program, planted)
    _stopping(tree)
    space = _loaded(program, compile(tree, f"<timed {program.name}>", "exec"), clock)
    space["requests_for"] = lambda seconds: itertools.count()
    requests: Iterator[None] = space["serve"](options)
    return requests


def _stopping(tree: ast.Module) -> None:
    """Make ``serve`` a generator that stops behind each request."""
    loops = [node for node in ast.walk(_function(tree, "serve")) if isinstance(node, ast.For)]
    (loop,) = [node for node in loops if "requests_for" in ast.unparse(node.iter)]
    loop.body.append(ast.Expr(ast.Yield()))
    ast.fix_missing_locations(tree)


def own_ns(clock: Clock, turns: int = 2000) -> tuple[float, float]:
    """What the timer alone shows, around a statement and around a call that do nothing, in ns."""
    for _ in range(turns):
        clock.open(0)
        clock.close(0)
    around = statistics.median(clock.spent[0])
    clock.reset()
    for _ in range(turns):
        clock.call(0, int)
    called = statistics.median(clock.spent[0])
    clock.reset()
    begun = time.perf_counter_ns()
    for _ in range(turns):
        int()
    return around, max(called - (time.perf_counter_ns() - begun) / turns, 0.0)


def turns_of(plant: Plant) -> float:
    """What a timed duration holds: a loop is timed as a whole."""
    return plant.per_request if plant.covers == "iteration" else 1.0


def _keep(file: Path, what: Any) -> None:
    made = file.with_suffix(".part")
    made.write_text(json.dumps(what), encoding="utf-8")
    made.rename(file)


def _loaded(program: Path, code: CodeType, clock: Clock | None) -> dict[str, Any]:
    """A program's names, with a clock's timers among them."""
    space: dict[str, Any] = {"__name__": program.stem, "__file__": str(program)}
    space |= clock.names() if clock else {}
    exec(code, space)
    return space


def measure(program: Path, options: Options) -> dict[str, Any]:
    """Run a program plain, timed, and timed with draining; returns what each planted place took, per execution."""
    planted = plants(program)
    code = compile(timed_tree(program, planted), str(program), "exec")
    drain = None
    if options.device.startswith("cuda"):
        import torch

        drain = torch.cuda.synchronize
    part = Options(options.device, options.size, options.seconds / 3)

    def run(clock: Clock | None) -> Any:
        source = code if clock else compile(program.read_text(encoding="utf-8"), str(program), "exec")
        space = _loaded(program, source, clock)
        space["serve"](Options(options.device, options.size, min(2.0, part.seconds)))
        if clock:
            clock.reset()
        return space["serve"](part)

    plain = run(None)
    request_ms = summary([int(seconds * 1e9) for seconds in REQUEST_SECONDS])
    assert request_ms is not None
    timed = Clock(len(planted))
    served = run(timed)
    drained = Clock(len(planted), drain)
    if drain is not None:
        run(drained)
    places = []
    for number, plant in enumerate(planted):
        runs = len(timed.spent[number])
        turns = turns_of(plant)
        places.append(
            {
                **asdict(plant),
                "executions": runs,
                "measured_per_request": turns * runs / served.requests,
                "host_ms": summary(timed.spent[number], turns),
                "pending_wait_ms": summary(drained.waited[number]) if turns == 1 else None,
                "rest_ms": summary(drained.spent[number], turns),
            }
        )
    return {
        "program": program.stem,
        "device": options.device,
        "size": options.size,
        "steps_per_request": plain.steps / plain.requests,
        "step_ms": request_ms["trimmed"] * plain.requests / plain.steps,
        "request_ms": request_ms["trimmed"],
        "plants": places,
    }
