"""What asking a model may cost: requests, tokens, seconds. Safe to be shared by threads."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Budget:
    """Requests take their tokens before they are sent and give back what they did not use."""

    calls: int
    tokens: int
    seconds: float
    used_calls: int = 0
    used_tokens: int = 0
    began: float = field(default_factory=time.monotonic)
    spent: str = ""  # what ran out, in words; "" while there is room
    _under_way: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def left(self) -> float:
        """Seconds."""
        return self.seconds - (time.monotonic() - self.began)

    def take(self, tokens: int) -> bool:
        """Room for one request of at most so many tokens. Waits where requests under way may still give some back."""
        with self._changed:
            while self._under_way and self.used_tokens + tokens > self.tokens and self.left() > 0:
                self._changed.wait(min(self.left(), 0.5))
            if self.used_calls >= self.calls:
                self.spent = self.spent or f"{self.calls} calls are used (--llm-max-calls)"
            elif self.used_tokens + tokens > self.tokens:
                self.spent = self.spent or f"{self.tokens} tokens are used (--llm-max-tokens)"
            elif self.left() <= 0:
                self.spent = self.spent or f"{self.seconds:.0f} s are over (--llm-max-seconds)"
            else:
                self.used_calls += 1
                self.used_tokens += tokens
                self._under_way += 1
                return True
            return False

    def settle(self, taken: int, used: int) -> None:
        """Give back what a request did not use."""
        with self._changed:
            self.used_tokens += used - taken
            self._under_way -= 1
            self._changed.notify_all()

    def __str__(self) -> str:
        return f"{self.used_calls} calls, {self.used_tokens} tokens, {time.monotonic() - self.began:.1f} s"
