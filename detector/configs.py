"""What is done for a file that is no Python: decode it, let its rules read it, keep what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Problem
from awp_lint.detector.project.cache import Cache, key
from awp_lint.detector.project.reading import ReadFile, read_bytes
from awp_lint.detector.project.stored import dumps, loads
from awp_lint.detector.work import Chosen, Outcome, told_fault


def config_outcomes(files: Sequence[ReadFile], settings: Settings, cache: Cache) -> list[Outcome]:
    """What the rules find in each file, from the cache where neither file nor settings have changed."""
    if not files:
        return []
    keys = [key("config", file.digest, file.identity, repr(settings)) for file in files]
    known = cache.get_many(keys)
    chosen = Chosen(settings)
    fresh: dict[bytes, bytes] = {}
    outcomes = []
    for file, name in zip(files, keys, strict=True):
        data = known.get(name)
        if data is None:
            data = fresh[name] = dumps(_outcome(file, settings, chosen))
        outcomes.append(loads(data))
    cache.put_many(fresh)
    return outcomes


def _outcome(file: ReadFile, settings: Settings, chosen: Chosen) -> Outcome:
    from awp_lint.rules.serving.configfiles.scan import read_config_file

    path, named = file.found.path, file.found.named
    try:
        text = read_bytes(file.found.real).decode("utf-8-sig")
    except UnicodeDecodeError:
        return _nothing(Problem(path, "not UTF-8 text", fatal=named))
    except OSError as error:
        return _nothing(Problem(path, f"cannot read: {error.strerror or error}", fatal=named))
    wanted = frozenset(rule.id for rule in chosen.on(path))
    try:
        result = read_config_file(path, text, file.found.kind, wanted)
    except (RecursionError, MemoryError):
        return _nothing(Problem(path, "nested too deeply to be analysed", fatal=named))
    except Exception as error:  # a fault of ours costs one file
        return _nothing(Problem(path, told_fault(error), fatal=named))
    findings = tuple(f for f in result.findings if f.confidence.order >= settings.confidence.order)
    notes = tuple(replace(note, fatal=note.fatal and named) for note in result.notes)
    if result.template and named:
        notes = (*notes, Problem(path, "a template, not read: give the files that it makes"))
    return Outcome(findings, notes, result.unused, (), b"")


def _nothing(problem: Problem) -> Outcome:
    return Outcome((), (problem,), (), (), b"")
