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


#: Programs that serve, variables that cost, and settings of engines in both spellings.
WORDS: tuple[bytes, ...] = tuple(
    dict.fromkeys((
        *_PROGRAMS,
        *(name.encode() for name in DEBUG),
        *(spelling for _, name in sorted(table()) if len(name) > 4 for spelling in _spellings(name)),
    ))
)  # fmt: skip
