"""The stages of a scan that is not answered from the cache as a whole: facts, linking, rules.

What is remembered of a file: its facts and a brief of them, by content; its outcome, by content and by the *world* (the
facts of all files, positions left out) in which the rules looked at it; and the answers that the project gave then. In
the same world a changed file is looked at again with the answers of before, without linking anything; a change that no
other file can notice (:mod:`.increment`) makes no other world. In another world
everything is linked anew, and an outcome stands if all its answers are the same.
"""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from awp_lint.detector.config import DEFAULT_EXCLUDES, Settings
from awp_lint.detector.configs import config_outcomes
from awp_lint.detector.finding import Problem
from awp_lint.detector.increment import Renumbering, State, unnoticed
from awp_lint.detector.project.cache import Cache, key
from awp_lint.detector.project.kinds import Kind
from awp_lint.detector.project.reading import ReadFile, read_bytes, screen
from awp_lint.detector.project.screening import Screened, in_scope
from awp_lint.detector.project.stored import dumps, loads
from awp_lint.detector.project.workers import each
from awp_lint.detector.scan import Progress, ScanResult
from awp_lint.detector.semantics.asking import Unanswered, from_memory
from awp_lint.detector.semantics.facts import FileFacts
from awp_lint.detector.semantics.index import IndexedFile
from awp_lint.detector.semantics.linked import Linked
from awp_lint.detector.semantics.regions import is_template
from awp_lint.detector.work import (
    Brief,
    Chosen,
    Earlier,
    Facts,
    Made,
    Outcome,
    World,
    facts_of,
    leans_stand,
    load_facts,
    look_at,
    outcome_of,
    prepare_facts,
    prepare_rules,
)

_FEW = 40  # files that are looked at with remembered answers; for more, linking anew is no dearer


def analyse(files: Sequence[ReadFile], settings: Settings, cache: Cache, progress: Progress | None) -> ScanResult:
    """Facts of all files, linked where need be; rules on each."""
    with _own_garbage():
        return _Run(files, settings, cache, progress).result()


#: Objects that earlier scans of this process may have left before they are looked through for garbage. Of a file of
#: five hundred lines it is some four thousand; an editor's server scans for days.
_MOST_LEFT = 200_000
_left = [0]


@contextmanager
def _own_garbage() -> Iterator[None]:
    """Leave garbage collection as it was, whatever the stages did in this process.

    What they have made counts as old from then on: as new it would be looked through at the very next occasion. The
    collector then sees no reason ever to look, so a later scan does it; a process that scans once never does.
    """
    enabled = gc.isenabled()
    if _left[0] > _MOST_LEFT:
        _left[0] = 0
        gc.collect()
    gc.disable()
    try:
        yield
    finally:
        _left[0] += gc.get_count()[0]  # made and not freed since the last look
        gc.freeze()
        gc.unfreeze()
        if enabled:
            gc.enable()


def _size(task: tuple[ReadFile, Any]) -> int:
    return task[0].size


def _folder(task: tuple[ReadFile, Any]) -> str:
    return task[0].found.path.rpartition("/")[0]


class _Counter:
    """Progress over both stages, shown as files."""

    def __init__(self, progress: Progress | None, files: int) -> None:
        self._progress = progress
        self._steps = 2 * files
        self._files = files
        self._done = 0

    def add(self, count: int = 1) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(min(self._files, self._done * self._files // max(1, self._steps)), self._files)

    def finish(self) -> None:
        self.add(max(0, self._steps - self._done))


class _Run:
    def __init__(self, files: Sequence[ReadFile], settings: Settings, cache: Cache, progress: Progress | None) -> None:
        self.files = [file for file in files if file.found.kind is Kind.PYTHON]
        self.configs = [file for file in files if file.found.kind is not Kind.PYTHON]
        self.settings = settings
        self.cache = cache
        self.count = _Counter(progress, len(self.files))
        self.place = {file.found.path: index for index, file in enumerate(self.files)}
        self.fresh: dict[int, Facts] = {}  # made in this run
        self.unpickled: dict[str, FileFacts] = {}
        whole = settings.exclude == DEFAULT_EXCLUDES  # else who knows what was left out
        self.walked = {file.module for file in self.files if whole and file.is_package and not file.found.named}

    def result(self) -> ScanResult:
        """The whole scan."""
        scope = self._scope()
        briefs = self._briefs(scope)
        problems = [
            Problem(file.found.path, brief.failure.message, brief.failure.line, fatal=file.found.named)
            for file, brief in zip(self.files, briefs, strict=True)
            if brief.failure is not None
        ]
        usable = [index for index, brief in enumerate(briefs) if index in scope and brief.failure is None]
        outcomes = [*self._outcomes(usable, briefs), *config_outcomes(self.configs, self.settings, self.cache)]
        self.count.finish()
        findings = [finding for outcome in outcomes for finding in outcome.findings]
        findings.sort(key=lambda f: (f.path, f.cell or 0, f.span.line, f.span.column, f.rule))
        return ScanResult(
            findings=tuple(findings),
            problems=(*problems, *(problem for outcome in outcomes for problem in outcome.problems)),
            unused=tuple(problem for outcome in outcomes for problem in outcome.unused),
            units=tuple(unit for outcome in outcomes for unit in outcome.units),
            files=len(self.files) + len(self.configs),
            lines=sum(file.lines for file in (*self.files, *self.configs)),
            seconds=0.0,
        )

    # facts ---------------------------------------------------------------------------------------------------------

    def _scope(self) -> set[int]:
        """The files that have to do with model code, and those that the user named; templates only where named."""
        keys = [key("screen", file.digest) for file in self.files]
        known = self.cache.get_many(keys)
        missing = [index for index, name in enumerate(keys) if name not in known]
        made = screen([self.files[index] for index in missing])
        self.cache.put_many({keys[index]: dumps(item) for index, item in zip(missing, made, strict=True)})
        new = dict(zip(missing, made, strict=True))
        screened: list[Screened] = []
        for index, file in enumerate(self.files):
            bare = new[index] if index in new else loads(known[keys[index]])
            screened.append(bare._replace(last_name=file.module.rpartition(".")[2]))
        templates = {index for index, file in enumerate(self.files) if is_template(file.found.path)}
        named = {index for index, file in enumerate(self.files) if file.found.named}
        return in_scope(screened) - templates | named

    def _key(self, what: str, index: int, scope: bool = True, digest: bytes | None = None) -> bytes:
        """``digest``: of another content than the file's own."""
        file = self.files[index]
        kind = "notebook" if file.found.real.endswith(".ipynb") else "module"
        parts = (file.module, str(file.is_package), kind, str(scope), repr(self.settings.target))
        return key(what, digest or file.digest, *parts)

    def _is_whole(self, file: ReadFile) -> bool:
        """Whether the outermost package of a file was gone through: its own ``__init__`` was not named by itself."""
        return not file.found.named and file.module.partition(".")[0] in self.walked

    def _briefs(self, scope: set[int]) -> list[Brief]:
        """What is to be known of every file; facts are made of those in scope that have none."""
        keys = [self._key("brief", index, index in scope) for index in range(len(self.files))]
        known = self.cache.get_many(keys)
        found: dict[int, Brief] = {index: Brief(*loads(known[k])) for index, k in enumerate(keys) if k in known}
        missing = [index for index in range(len(self.files)) if index not in found]
        self.count.add(len(self.files) - len(missing))
        kept: dict[bytes, bytes] = {}
        tasks = [(self.files[index], index in scope) for index in missing]
        made: Made
        for position, made in each(
            facts_of, tasks, self.settings.jobs, prepare_facts, (self.settings,), _size, _folder
        ):
            index = missing[position]
            found[index] = made.brief
            kept[keys[index]] = dumps(tuple(made.brief))
            if made.facts is not None:
                self.fresh[index] = made.facts
                if isinstance(made.facts, bytes):
                    kept[self._key("facts", index)] = made.facts
            self.count.add()
        self.cache.put_many(kept)
        return [found[index] for index in range(len(self.files))]

    def _facts(self, index: int) -> Facts:
        """The facts of a file in scope, made again where the cache has lost them."""
        data = self.fresh.get(index)
        if data is None:
            name = self._key("facts", index)
            data = self.cache.get_many((name,)).get(name)
        if data is None:
            prepare_facts(self.settings)
            data = facts_of((self.files[index], True)).facts
        if data is None:
            raise RuntimeError(f"{self.files[index].found.path}: changed while it was scanned")
        return data

    def _facts_by_path(self, path: str) -> FileFacts:
        known = self.unpickled.get(path)
        if known is None:
            known = self.unpickled[path] = load_facts(self._facts(self.place[path]))[0]
        return known

    # rules ---------------------------------------------------------------------------------------------------------

    def _outcomes(self, usable: Sequence[int], briefs: Sequence[Brief]) -> list[Outcome]:
        digest = hashlib.blake2b(digest_size=20)
        for index in usable:
            file = self.files[index]
            for part in (file.found.path, file.module, str(file.is_package), str(self._is_whole(file))):
                digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
            digest.update(briefs[index].shape + briefs[index].values)
        about = repr(self.settings)
        name, moved = self._world(digest.digest(), usable, about)
        world = World(
            linked=None,
            facts_of=self._facts_by_path,
            digests={file.found.path: file.digest for file in self.files},
            chosen=Chosen(self.settings),
            settings=self.settings,
            world=name,
        )
        keys = {i: key("outcome", self.files[i].digest, self.files[i].identity, about) for i in usable}
        answer_keys = {i: key("answers", self.files[i].identity, about) for i in usable}
        known = self.cache.get_many(keys.values())
        outcomes: dict[int, Outcome] = {}
        todo: list[int] = []
        for index in usable:
            data = known.get(keys[index])
            outcome = loads(data) if data is not None else None
            if outcome is not None and outcome.world == world.world and leans_stand(outcome, world.digests):
                outcomes[index] = outcome
            else:
                todo.append(index)
        self.count.add(len(self.files) - len(todo))
        kept: dict[bytes, bytes] = {}
        if len(todo) <= _FEW:
            kept.update(self._from_memory(todo, world, answer_keys, moved, outcomes))
            kept.update({keys[i]: dumps(outcomes[i]) for i in todo if i in outcomes})
            todo = [index for index in todo if index not in outcomes]
        if todo:
            self._link(usable, world)
            answers = self.cache.get_many([answer_keys[i] for i in todo if keys[i] in known])
            tasks: list[tuple[ReadFile, Earlier | None]] = []
            for index in todo:
                noted = answers.get(answer_keys[index])
                earlier = Earlier(known[keys[index]], noted) if noted is not None and keys[index] in known else None
                tasks.append((self.files[index], earlier))
            for position, (outcome, noted) in each(
                outcome_of, tasks, self.settings.jobs, prepare_rules, (world,), _size, _folder
            ):
                index = todo[position]
                if isinstance(outcome, bytes):
                    kept[keys[index]] = outcome
                    outcome = loads(outcome)
                outcomes[index] = outcome
                if noted is not None:
                    kept[answer_keys[index]] = noted
                self.count.add()
        self.cache.put_many(kept)
        return [outcomes[index] for index in sorted(outcomes)]

    def _world(self, digest: bytes, usable: Sequence[int], about: str) -> tuple[bytes, dict[int, Renumbering]]:
        """The name of the world that the files are: that of the last scan, if since then nothing changed but what
        nobody notices; with the new numbers of functions in the files that changed so."""
        contents = {self.files[index].found.path: self.files[index].digest for index in usable}
        place = key("last", about, *(self.files[index].identity for index in usable))
        data = self.cache.get_many((place,)).get(place)
        name, moved = digest, {}
        if data is not None:
            last, last_name, before = loads(data)
            changed = [index for index in usable if before[self.files[index].found.path] != self.files[index].digest]
            if last == digest:
                name = last_name
            elif len(changed) <= _FEW and not self.settings.entry_points:
                found = self._unnoticed({index: before[self.files[index].found.path] for index in changed})
                name, moved = (digest, {}) if found is None else (last_name, found)
        self.cache.put_many({place: dumps((digest, name, contents))})
        return name, moved

    def _unnoticed(self, changed: dict[int, bytes]) -> dict[int, Renumbering] | None:
        """The new numbers of functions in changed files, given with what they held; None if anybody may notice."""
        allowed: Counter[str] = Counter()
        moved: dict[int, Renumbering] = {}
        for index, digest in changed.items():
            name = self._key("facts", index, digest=digest)
            data = self.cache.get_many((name,)).get(name)
            if data is None:
                return None
            change = unnoticed(
                self.files[index].found.path, State(*load_facts(data)), State(*load_facts(self._facts(index)))
            )
            if change is None:
                return None
            allowed.update(change.names)
            moved[index] = change.renumbering
        for file in self.files if allowed else ():
            raw = read_bytes(file.found.real)
            allowed.subtract({name: raw.count(name.encode("utf-8", "surrogatepass")) for name in allowed})
        return None if any(left < 0 for left in allowed.values()) else moved

    def _from_memory(
        self,
        todo: Sequence[int],
        world: World,
        answer_keys: dict[int, bytes],
        moved: dict[int, Renumbering],
        outcomes: dict[int, Outcome],
    ) -> dict[bytes, bytes]:
        """Look at files again with the answers that the project gave in the same world. Returns the answers that have
        to be remembered by other numbers."""
        kept: dict[bytes, bytes] = {}
        remembered = self.cache.get_many([answer_keys[index] for index in todo])
        for index in todo:
            data = remembered.get(answer_keys[index])
            if data is None:
                continue
            answers = loads(data)
            if answers.get(("world",)) != world.world:
                continue
            if index in moved:
                answers = moved[index].moved(answers)
            try:
                outcomes[index] = look_at(self.files[index], from_memory(answers), world)
            except Unanswered:
                continue
            if index in moved:
                kept[answer_keys[index]] = dumps(answers)
            self.count.add()
        return kept

    def _link(self, usable: Sequence[int], world: World) -> None:
        names = [self._key("facts", index) for index in usable if index not in self.fresh]
        self_known = self.cache.get_many(names)
        indexed: list[IndexedFile] = []
        values = []
        for index in usable:
            data = self.fresh.get(index) or self_known.get(self._key("facts", index)) or self._facts(index)
            facts, value = load_facts(data)
            file = self.files[index]
            whole = self._is_whole(file)
            indexed.append(IndexedFile(file.found.path, file.found.real, file.module, file.is_package, facts, whole))
            values.append(value)
        self.fresh.clear()
        self.unpickled = {file.path: file.facts for file in indexed}
        world.linked = Linked(indexed, values, self.settings)
        facts_by_path: Callable[[str], FileFacts] = self.unpickled.__getitem__
        world.facts_of = facts_by_path
