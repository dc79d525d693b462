"""Settings: the same names on the command line and in ``[tool.awp-lint]``."""

from __future__ import annotations

from dataclasses import dataclass, field

from awp_lint.detector.finding import Confidence
from awp_lint.detector.semantics.view import Target

DEFAULT_EXCLUDES = (
    ".git", ".venv", "venv", "env", "build", "dist", "node_modules", "__pycache__", "site-packages",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that decides which findings a scan gives. Hashable parts only, since it is a part of cache keys."""

    select: tuple[str, ...] = ("AWP",)
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    confidence: Confidence = Confidence.MEDIUM
    include: tuple[str, ...] = ("*.py", "*.ipynb")
    exclude: tuple[str, ...] = DEFAULT_EXCLUDES
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    entry_points: tuple[tuple[str, str], ...] = ()  # (function pattern, frequency such as "request×token")
    target: Target = field(default_factory=Target)
    jobs: int = 0  # 0: one a core
    cache: bool = True
