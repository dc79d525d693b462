"""Many questions at once: answers kept from earlier runs first, the others by several threads within the budget."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
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
        pool = ThreadPoolExecutor(max_workers=min(self.settings.jobs, len(questions)))
        futures: dict[Future[dict[str, Any]], int] = {
            pool.submit(client.ask, question): number for number, question in enumerate(questions)
        }
        try:
            for future in as_completed(futures):
                self._take(future, futures[future], done)
                self.report(f"{len(done)} of {len(questions)} answers ({self.budget})")
                if self.broken:
                    for other in futures:
                        other.cancel()
                    break
        except KeyboardInterrupt:
            self.interrupted = True
            self.broken = "interrupted"
        finally:
            if self.broken:
                client.close()  # what is under way ends now, not when the server pleases
            pool.shutdown(wait=True, cancel_futures=True)
        seen = {number for number, _ in done}
        for future, number in futures.items():  # what came in before the end
            if number not in seen and future.done() and not future.cancelled():
                self._take(future, number, done)
        return done

    def _take(self, future: Future[dict[str, Any]], number: int, done: list[tuple[int, Answer]]) -> None:
        try:
            done.append((number, future.result()))
            self.answered += 1
        except LlmError as error:
            done.append((number, error))
            if error.final:
                self.broken = self.broken or str(error)
            else:
                self.failures[str(error)] = self.failures.get(str(error), 0) + 1

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


def shown(questions: Sequence[Question], base_url: str) -> str:
    """What would be sent, as a text: for ``--llm-dry-run``."""
    rows = [json.dumps(question.payload(), indent=1, ensure_ascii=False) for question in questions]
    return "".join(f"POST {base_url.rstrip('/')}/chat/completions\n{row}\n" for row in rows)


def as_text(data: Mapping[str, Any]) -> str:
    """The data part of a message."""
    return json.dumps(data, indent=1, ensure_ascii=False)
