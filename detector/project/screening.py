"""Which files are worth parsing, told from their bytes alone.

Rules run on files that hold one of the rules' words; facts are built for every file that model code imports or is
imported by, however far: a handler that never mentions torch decides how often the hot code runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_IMPORT = re.compile(rb"[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(.*)|import[ \t]+([\w., \t]+))")
_NAME = re.compile(rb"\w+")
_MODEL_CODE = re.compile(
    rb"\b(torch|transformers|diffusers|vllm|sglang|accelerate|peft|sentence_transformers|tensorrt(_llm)?|onnxruntime"
    rb"|timm|open_clip|deepspeed|cuda)\b"
)


def is_model_code(raw: bytes) -> bool:
    """Whether the file mentions a library that runs models."""
    return _MODEL_CODE.search(raw) is not None


class Screened(NamedTuple):
    """What the bytes of a file tell."""

    last_name: str  # of its module
    model_code: bool
    imports: frozenset[str]


def in_scope(files: Sequence[Screened]) -> set[int]:
    """Indexes of the files that have to do with model code: it, what it imports and what imports it, however far.

    An import is followed by the last names it mentions, so that the answer errs towards too many files.
    """
    model_code = [index for index, file in enumerate(files) if file.model_code]
    if len(model_code) == len(files):
        return set(model_code)
    by_last: dict[str, list[int]] = {}
    for index, file in enumerate(files):
        by_last.setdefault(file.last_name, []).append(index)
    imports: list[set[int]] = []
    importers: list[set[int]] = [set() for _ in files]
    for index, file in enumerate(files):
        imports.append({target for name in file.imports for target in by_last.get(name, ())})
        for target in imports[index]:
            importers[target].add(index)
    return _reached(model_code, imports) | _reached(model_code, importers)


def _reached(start: Iterable[int], following: Sequence[Iterable[int]]) -> set[int]:
    """What can be reached. A library of graphs takes longer to load than all else of a scan that the cache answers."""
    found = set(start)
    pending = list(found)
    while pending:
        for index in following[pending.pop()]:
            if index not in found:
                found.add(index)
                pending.append(index)
    return found


def imported_names(raw: bytes) -> frozenset[str]:
    """Last names of the modules and things that the file imports."""
    found: set[str] = set()
    end = -1
    while (at := raw.find(b"import", end + 1)) >= 0:
        end = raw.find(b"\n", at)
        end = end if end >= 0 else len(raw)
        match = _IMPORT.match(raw, raw.rfind(b"\n", 0, at) + 1)
        if match is None:
            continue
        source, names, plain = match.groups()
        if plain is not None:
            found.update(part.split()[0].rpartition(b".")[2].decode() for part in plain.split(b",") if part.split())
        else:
            found.add(source.rpartition(b".")[2].decode() or "__init__")
            found.update(name.decode() for name in _NAME.findall(names))
    return frozenset(found)
