"""The data that every part exchanges: findings, fixes, marks, evidence.

Plain frozen data, no behaviour beyond derived properties and nothing imported from the rest of the project, so that
rules, profiling, patches and reports depend on this module and not on each other. Field meanings and units follow the
JSON contract (``awp-lint/1``); times are milliseconds and, in :class:`Evidence`, per ``unit``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class RootCause(enum.Enum):
    """The six reasons why an accelerator is wasted; a rule names exactly one."""

    COMPUTE = "compute"
    MEMORY = "memory"
    SCHEDULING = "scheduling"
    RUNTIME = "runtime"
    COMMUNICATION = "communication"
    SYSTEM = "system"


class Confidence(enum.Enum):
    """How sure the static half is; device and frequency both proven is high, one assumed is medium."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def order(self) -> int:
        """3 for high, 2 for medium, 1 for low: larger is surer."""
        return {"high": 3, "medium": 2, "low": 1}[self.value]


class Safety(enum.Enum):
    """What a fix may change: nothing (safe), something it names (unsafe), or text only (manual)."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    MANUAL = "manual"


class Effect(enum.Enum):
    """What an unsafe fix may change; listed on the patch."""

    NUMERICS = "numerics"
    RNG = "rng"
    MEMORY = "memory"
    STRUCTURE = "structure"
    ALIASING = "aliasing"
    TIMING = "timing"
    POSITIONS = "positions"  # of a sequence of results the last alone is made


class Event(enum.Enum):
    """What the profile must see inside a mark for the finding to be real."""

    WAIT = "wait"  # the host blocks on the device (a synchronising runtime call, or a blocking copy)
    COPY = "copy"  # bytes cross between host and device, or device to device
    LAUNCHES = "launches"  # device work started inside the mark
    HOST = "host"  # host time inside the mark
    NONE = "none"  # nothing that a run could show


class MarkKind(enum.Enum):
    """What a mark covers in the running program."""

    CALL = "call"  # one call expression, by its exact position
    STATEMENT = "statement"  # a line range, closed by the first event outside it
    LOOP = "loop"  # a loop statement with everything it runs
    FUNCTION = "function"  # every call of a function


@dataclass(frozen=True, slots=True)
class Span:
    """A source range: 1-based lines and columns in code points, end exclusive in columns."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Mark:
    """What the profile run shall time for a finding.

    ``line`` … ``end_column`` are ``ast`` positions (columns 0-based in UTF-8 bytes), since that is what
    ``code.co_positions()`` speaks. ``function`` is the code object's qualified name with ``<locals>`` left out
    and ``function_line`` its ``co_firstlineno`` (the first decorator's line), which tell code objects apart.
    """

    kind: MarkKind
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    function_line: int
    expects: Event


@dataclass(frozen=True, slots=True)
class Frame:
    """One link of a frequency chain: where something is called from."""

    path: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that matters to a finding."""

    path: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace ``text[start:end]`` of a file's decoded text (code points, BOM not counted)."""

    start: int
    end: int
    replacement: str


@dataclass(frozen=True, slots=True)
class Import:
    """A module-level import that an edit needs; with ``name``, ``from module import name``."""

    module: str
    name: str | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a fix does to a file other than the finding's: edits and imports, or ``created``, the text of a new file."""

    path: str
    edits: tuple[Edit, ...] = ()
    imports: tuple[Import, ...] = ()
    created: str = ""


@dataclass(frozen=True, slots=True)
class Fix:
    """A rewrite as plain data: edits of the finding's file that do not overlap, and what it does to other files.

    All of it is applied or nothing. ``patches`` fills in ``diff``. ``author`` names the language model that wrote the
    edits, "" where they are a rule's.
    """

    title: str
    safety: Safety
    edits: tuple[Edit, ...] = ()
    imports: tuple[Import, ...] = ()
    effects: tuple[Effect, ...] = ()
    requires: tuple[str, ...] = ()
    diff: str = ""
    others: tuple[FileChange, ...] = ()
    author: str = ""


class Verdict(enum.Enum):
    """What a run says of a finding; the contract defines each."""

    CONFIRMED = "confirmed"
    PRESENT_BUT_FREE = "present_but_free"
    REFUTED = "refuted"
    REACHED_OUTSIDE_WINDOWS = "reached_outside_windows"
    NOT_REACHED = "not_reached"
    UNATTRIBUTABLE = "unattributable"
    STATIC_ONLY = "static_only"

    @property
    def counts(self) -> bool:
        """Whether a finding with this verdict makes the exit code 1."""
        return self in (Verdict.CONFIRMED, Verdict.STATIC_ONLY)


@dataclass(frozen=True, slots=True)
class Copies:
    """Bytes copied per unit; ``pageable`` is None where the trace does not say."""

    h2d_bytes: float = 0.0
    d2h_bytes: float = 0.0
    pageable: bool | None = None


@dataclass(frozen=True, slots=True)
class PredictedSaving:
    """What the step would gain without the finding; percent of the unprofiled unit."""

    ms: float
    pct: float
    low_pct: float
    high_pct: float
    assumption: str


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of a series of times in ms. None where the series is too short to hold one: 20 values for p95, 100 for p99."""

    values: int
    p50: float
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a run measured for one finding, per ``unit`` (``calls`` is the total)."""

    verdict: Verdict
    reason: str
    scope: str = "device"  # "device", or "host" where only host cost can be seen
    unit: str = "run"  # step | request | call | run
    calls: int = 0
    calls_per_unit: float = 0.0
    host_ms: float | None = None
    blocked_ms: float | None = None
    gpu_ms: float | None = None
    idle_ms: float | None = None
    launches: float | None = None
    copies: Copies = field(default_factory=Copies)
    predicted_saving: PredictedSaving | None = None
    call_ms: Percentiles | None = None  # host time of one execution, in windows without the profiler


class VerificationVerdict(enum.Enum):
    """What an A/B run says of a patch; the contract defines each."""

    VERIFIED = "verified"
    NO_EFFECT = "no_effect"
    REGRESSION = "regression"
    NOT_RESOLVED = "not_resolved"
    NOT_EXERCISED = "not_exercised"
    DIFFERS = "differs"
    DOES_NOT_RUN = "does_not_run"


@dataclass(frozen=True, slots=True)
class Verification:
    """What was proven of one finding's patch. Savings in percent of the unit's time; None where nothing was measured.

    ``pairs`` counts the rounds that the interval rests on. ``equality`` says in a line how the two versions were
    compared and what came out.
    """

    verdict: VerificationVerdict
    saving_pct: float | None = None
    low_pct: float | None = None
    high_pct: float | None = None
    pairs: int = 0
    equality: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One place in the user's code and one root cause.

    ``path`` is POSIX, relative to the working folder when below it, else absolute. ``function`` is the dotted
    qualified name without ``<locals>`` (``<module>`` at top level). ``score`` orders findings that no run has
    priced; it is never shown as a time.
    """

    id: str
    rule: str
    name: str
    path: str
    span: Span
    function: str
    message: str
    why: tuple[str, ...]
    root_cause: RootCause
    frequency: str
    confidence: Confidence
    mark: Mark | None = None
    chain: tuple[Frame, ...] = ()
    group: str | None = None
    also: tuple[str, ...] = ()
    related: tuple[Related, ...] = ()
    origin: str = "project"  # "project" or "dependency"
    cell: int | None = None
    rank: int = 0
    score: float = 0.0
    suppressed: str | None = None  # the reason given in the source, "" when none was given
    fix: Fix | None = None
    evidence: Evidence | None = None
    verification: Verification | None = None

    @property
    def line(self) -> int:
        """First line, 1-based."""
        return self.span.line


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be done: a file not read or parsed, a rule that failed on a definition."""

    path: str
    message: str
    line: int | None = None
    fatal: bool = False  # True where the contract asks for exit code 2 (a file the user named)
