"""What rules see of the semantic model: one function with its values, frequencies, regions and names.

A :class:`FunctionView` stands for one *definition*: a function, a method, a nested function, or the module's top level.
Nested functions are views of their own; nodes inside them do not belong to the outer view. Everything is asked by
``ast`` node; nodes are those of the file's one ``ast`` tree.
"""

from __future__ import annotations

import ast
import enum
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from awp_lint.detector.finding import Frame
from awp_lint.detector.semantics.values import Certainty, Value


class Level(enum.Enum):
    """One factor of an execution frequency, outermost first in a path."""

    REQUEST = "request"
    STEP = "step"  # an engine step, a denoising step, a frame
    TOKEN = "token"
    LAYER = "layer"
    EXPERT = "expert"
    ITEM = "item"  # an item of a batch, a row
    ELEMENT = "element"  # an element of a tensor
    LOOP = "loop"  # a loop of unknown kind


@dataclass(frozen=True, slots=True)
class Frequency:
    """How often a statement runs.

    ``path`` is outermost first: ``(REQUEST, TOKEN, LAYER)``. An empty path with certainty PROVEN or ASSUMED is set-up
    (once a process); with certainty UNKNOWN nothing is known (no caller seen). ``chain`` explains the path, the entry
    point first. ``str()`` gives the contract's words: ``request×token×layer``, ``setup``, ``unknown``.
    """

    path: tuple[Level, ...] = ()
    certainty: Certainty = Certainty.UNKNOWN
    chain: tuple[Frame, ...] = ()

    @property
    def known(self) -> bool:
        """Whether anything is known at all."""
        return self.certainty is not Certainty.UNKNOWN

    @property
    def hot(self) -> bool:
        """Reached per step, token, layer, expert, item or element of served work: more often than once a request."""
        return self.known and any(level not in (Level.REQUEST, Level.LOOP) for level in self.path)

    @property
    def served(self) -> bool:
        """Reached at least once a request."""
        return self.known and bool(self.path)

    def __str__(self) -> str:
        if not self.known:
            return "unknown"
        return "×".join(level.value for level in self.path) or "setup"


class Callers(NamedTuple):
    """Who calls a function, as far as the project shows. ``calls``: how many there are; ``last``: of what each of them
    gives the last position alone is used (``x[:, -1]``); ``off``: gradients are off at one, or further up."""

    calls: int = 0
    last: bool = False
    off: bool = False


class Region(enum.Flag):
    """What surrounds a statement."""

    NONE = 0
    INFERENCE = enum.auto()  # torch.inference_mode or no_grad
    COMPILED = enum.auto()  # inside torch.compile, torch.jit or an exported function
    CAPTURED = enum.auto()  # inside a CUDA graph capture
    TIMED = enum.auto()  # timing or benchmark code
    ASYNC_HANDLER = enum.auto()  # an async route handler, or called from one on the event loop
    TEST = enum.auto()
    TRAINING = enum.auto()  # runs only when training
    DEBUG = enum.auto()  # assert, debug flag, logging-level guard
    FALLBACK = enum.auto()  # the other branch of a switch of implementations, an except handler, what no call makes run
    EXPORT = enum.auto()  # tracing, scripting, ONNX export branches
    ERROR = enum.auto()  # ends in raise
    MAIN = enum.auto()  # below ``if __name__ == "__main__"``

    # those of Flag make each result anew, at ten times the cost
    def __or__(self, other: Region) -> Region:
        return _region(self._value_ | other._value_)

    def __and__(self, other: Region) -> Region:
        return _region(self._value_ & other._value_)

    def __bool__(self) -> bool:
        return self._value_ != 0


@functools.cache
def _region(value: int) -> Region:
    return Region(value)


class LoopKind(enum.Enum):
    """What a loop goes over."""

    LAYERS = "layers"
    STEPS = "steps"  # denoising or engine steps, frames
    TOKENS = "tokens"
    BATCH = "batch"  # rows of a tensor, samples of a batch
    REQUESTS = "requests"  # a server's queue or prompts
    ELEMENTS = "elements"
    EXPERTS = "experts"
    EPOCHS = "epochs"
    FILES = "files"
    RETRIES = "retries"
    FIXED = "fixed"  # a short literal range
    UNKNOWN = "unknown"


class FunctionView(Protocol):
    """One definition as the rules see it."""

    @property
    def path(self) -> str: ...

    @property
    def module(self) -> str: ...

    @property
    def qualname(self) -> str:
        """Dotted, without ``<locals>``: ``Pipeline.__call__``; ``<module>`` at top level."""

    @property
    def node(self) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module: ...

    @property
    def class_name(self) -> str | None:
        """Dotted name of the class that holds the method, else None."""

    @property
    def class_bases(self) -> frozenset[str]:
        """Dotted names of all known bases, through the project and library facts (``torch.nn.Module``)."""

    def nodes(self, *types: type[ast.AST]) -> Sequence[ast.AST]:
        """The nodes of these exact types in this definition, in source order, nested definitions left out."""

    def value(self, node: ast.expr) -> Value:
        """What the expression may be where it stands (joined over loop iterations)."""

    def frequency(self, node: ast.AST) -> Frequency:
        """How often the statement that holds the node runs."""

    def regions(self, node: ast.AST) -> Region: ...

    def qualified(self, node: ast.expr) -> str | None:
        """Dotted name of what a Name or Attribute refers to, aliases resolved: ``torch.nn.functional.softmax``.

        For a method of a value whose class is known: ``torch.Tensor.item``, ``transformers.GenerationMixin.generate``.
        """

    def callers(self) -> Callers:
        """Who calls the definition."""

    def switches_off(self, function: str) -> bool:
        """Whether the project's function of this dotted name switches gradients off for what it does, or for some."""

    def targets(self, call: ast.Call) -> tuple[str, ...]:
        """Dotted names of the project's functions that the call may reach; empty when unknown or outside."""

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The enclosing node, within this definition."""

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that holds the node."""

    def loops(self, node: ast.AST) -> tuple[ast.For | ast.AsyncFor | ast.While | ast.comprehension, ...]:
        """The loops of this definition around the node, innermost first."""

    def loop_kind(self, loop: ast.AST) -> LoopKind: ...

    def assignments(self, name: str) -> Sequence[ast.stmt]:
        """The statements of this definition that bind the local name, in source order."""

    def uses(self, name: str) -> Sequence[ast.Name]:
        """The loads of the local name in this definition and the functions nested in it."""

    def written_in(self, loop: ast.AST) -> frozenset[str]:
        """Local names and dotted ``self.x`` that may be bound or mutated in the loop's body or header."""

    def outer(self) -> FunctionView | None:
        """The enclosing function's view, for nested functions."""

    @property
    def memo(self) -> dict[Any, dict[Any, Any]]:
        """Room for what rules work out of this definition, by who worked it out and of what."""


class FileView(Protocol):
    """One file as the rules see it."""

    @property
    def path(self) -> str: ...

    @property
    def module(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def tree(self) -> ast.Module: ...

    @property
    def imports(self) -> Mapping[str, str]:
        """Module-level names bound by imports, to what they mean: ``{"F": "torch.nn.functional"}``."""

    @property
    def target(self) -> Target: ...

    def functions(self) -> Iterator[FunctionView]: ...

    def speaks_of(self, word: str) -> bool:
        """Whether a function, an import, a call or an argument of one anywhere in the project has the word in its
        name."""

    def says(self, text: str) -> bool:
        """Whether a default, an argument of a call or a field of a configuration of the project is this text."""

    def is_spare(self, cls: str) -> bool:
        """Whether the whole package is there to see, a class of the file, by its plain name, is not among what the file
        gives others, and no other file names it."""

    def defaults(self, field: str) -> tuple[str, ...]:
        """The texts of a field's defaults in the configuration classes that the file imports or defines."""

    @property
    def memo(self) -> dict[Any, Any]:
        """Room for what rules work out of the file, by who worked it out."""


@dataclass(frozen=True, slots=True)
class Target:
    """What the code will run on. Versions are ``(major, minor)``; None is the newest known."""

    torch: tuple[int, int] | None = None
    transformers: tuple[int, int] | None = None
    device: str = "cuda"  # cuda, rocm, mps or cpu
