"""Many questions at once: answers kept from earlier runs first, the others by several threads within the budget."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from awp_lint.detector.advice.budget import Budget
from awp_lint.detector.advice.client import Client, LlmError, Question, parsed
from awp_lint.detector.advice.settings import LlmSettings
from awp_lint.detector.project.cache import Cache, key

Answer = dict[str, Any] | LlmError
Report = Callable[[str], None]


@dataclass
class Asker:
    """One run's conversation with an endpoint. ``broken`` is why nothing more is asked, "" while it works."""

    settings: LlmSettings
    report: Report = lambda text: None
    budget: Budget = field(init=False)
    broken: str = ""
    interrupted: bool = False
    cached: int = 0
    answered: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    _client: Client | None = None
    _at_once: bool = False  # whether what is under way is given up with it

    def __post_init__(self) -> None:
        limits = self.settings
        self.budget = Budget(limits.max_calls, limits.max_tokens, limits.max_seconds)

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """An answer or an error a question, in their order. Ctrl-C ends it with the answers so far."""
        cache = Cache(self.settings.cache)
        try:
            return self._ask(questions, cache)
        finally:
            cache.close()

    def missing(self, questions: Sequence[Question]) -> int:
        """How many of them no earlier run has answered."""
        cache = Cache(self.settings.cache)
        try:
            return len(questions) - len(cache.get_many(self._key(question) for question in questions))
        finally:
            cache.close()

    def _ask(self, questions: Sequence[Question], cache: Cache) -> list[Answer]:
        keys = [self._key(question) for question in questions]
        known = cache.get_many(keys)
        found: dict[int, Answer] = {}
        for number, question in enumerate(questions):
            kept = known.get(keys[number])
            if kept is not None:
                try:
                    found[number] = parsed(kept.decode(), question.schema)
                except (LlmError, UnicodeDecodeError):
                    continue  # asked again
                self.cached += 1
        missing = [number for number in range(len(questions)) if number not in found]
        for number, answer in self._fresh([questions[n] for n in missing]):
            found[missing[number]] = answer
            if isinstance(answer, dict):
                cache.put_many({keys[missing[number]]: json.dumps(answer).encode()})
        nothing = LlmError(self.broken or "not asked", True)
        return [found.get(number, nothing) for number in range(len(questions))]

    def _key(self, question: Question) -> bytes:
        return key("llm", self.settings.base_url, json.dumps(question.payload(), sort_keys=True))

    def _fresh(self, questions: Sequence[Question]) -> list[tuple[int, Answer]]:
        done: list[tuple[int, Answer]] = []
        if not questions or self.broken:
            return done
        try:
            client = self._client = self._client or Client(self.settings, self.budget)
        except LlmError as error:
            self.broken = str(error)
            return done
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        ready: queue.SimpleQueue[tuple[int, Answer] | None] = queue.SimpleQueue()  # None: a thread has ended
        for number in range(len(questions)):
            waiting.put(number)

        def work() -> None:
            while not self.broken:
                try:
                    number = waiting.get_nowait()
                except queue.Empty:
                    break
                ready.put((number, _answer(client, questions[number])))
            ready.put(None)

        # Daemons, since a read that waits for a silent server must not keep the program from ending.
        working = min(self.settings.jobs, len(questions))
        for _ in range(working):
            threading.Thread(target=work, name="awp-lint-llm", daemon=True).start()
        try:
            while working and not (self.broken and self._at_once):
                made = ready.get()
                if made is None:
                    working -= 1
                    continue
                self._note(made[1])
                done.append(made)
                self.report(f"{len(done)} of {len(questions)} answers ({self.budget})")
        except KeyboardInterrupt:
            self.interrupted = self._at_once = True
            self.broken = "interrupted"
        if self._at_once:
            client.close()  # what is under way is of no use
        while not ready.empty():  # what came in before the end
            made = ready.get()
            if made is not None and isinstance(made[1], dict):
                self._note(made[1])
                done.append(made)
        return done

    def _note(self, answer: Answer) -> None:
        if isinstance(answer, dict):
            self.answered += 1
        elif answer.final:
            self.broken = self.broken or str(answer)
            self._at_once = self._at_once or not answer.spent
        else:
            self.failures[str(answer)] = self.failures.get(str(answer), 0) + 1

    def close(self) -> None:
        """Give connections back."""
        if self._client is not None:
            self._client.close()

    def summary(self) -> str:
        """One line: what was asked, what it cost, what went wrong."""
        pieces = [f"{self.answered} answers from {self.settings.base_url} ({self.budget})"]
        if self.cached:
            pieces.append(f"{self.cached} kept from earlier runs")
        if self.failures:
            most = max(self.failures, key=lambda text: self.failures[text])
            pieces.append(f"{sum(self.failures.values())} without use: {most}")
        if self.broken:
            pieces.append(f"ended early: {self.broken}")
        return f"language model: {'; '.join(pieces)}"


def _answer(client: Client, question: Question) -> Answer:
    try:
        return client.ask(question)
    except LlmError as error:
        return error
    except Exception as error:  # a fault of ours in a thread: told as any other
        return LlmError(f"asking failed: {type(error).__name__}: {error}")


def shown(questions: Sequence[Question], base_url: str) -> str:
    """What would be sent, as a text: for ``--llm-dry-run``."""
    rows = [json.dumps(question.payload(), indent=1, ensure_ascii=False) for question in questions]
    return "".join(f"POST {base_url.rstrip('/')}/chat/completions\n{row}\n" for row in rows)


def as_text(data: Mapping[str, Any]) -> str:
    """The data part of a message."""
    return json.dumps(data, indent=1, ensure_ascii=False)
