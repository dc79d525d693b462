"""The words of which a file must hold one before it is taken apart: a tree full of YAML shall cost nothing."""

from __future__ import annotations

import re

from awp_lint.rules.serving.engines import table
from awp_lint.rules.serving.environment import DEBUG

_PROGRAMS = (
    b"vllm", b"sglang", b"trtllm-serve", b"text-generation", b"lmdeploy", b"uvicorn", b"gunicorn", b"flask run",
)  # fmt: skip


def _spellings(name: str) -> tuple[bytes, ...]:
    plain = name.rpartition(".")[2]
    hump = re.sub(r"-(\w)", lambda m: m.group(1).upper(), plain)
    return plain.encode(), plain.replace("-", "_").encode(), hump.encode()


#: Programs that serve, variables that cost, and settings of engines in all spellings.
WORDS: tuple[bytes, ...] = tuple(
    dict.fromkeys((
        *_PROGRAMS,
        *(name.encode() for name in DEBUG),
        *(spelling for _, name in sorted(table()) if len(name) > 4 for spelling in _spellings(name)),
    ))
)  # fmt: skip


def _stem(name: str) -> bytes:
    """What all spellings of a setting share: its longest part, less the letter whose case changes."""
    return max(name.rpartition(".")[2].split("-"), key=len)[1:].encode()


_OTHERS = (*_PROGRAMS, *(name.encode() for name in DEBUG))
_STEMS = tuple({_stem(name) for _, name in table() if len(name) > 4})


def may_matter(raw: bytes) -> bool:
    """Whether a file holds one of the words."""
    if any(word in raw for word in _OTHERS):
        return True
    return any(stem in raw for stem in _STEMS) and any(word in raw for word in WORDS)
