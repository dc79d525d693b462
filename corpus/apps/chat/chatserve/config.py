"""Model sizes and the options of a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ModelConfig:
    vocab_size: int
    dim: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    max_length: int
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-5

    @property
    def head_dim(self) -> int:
        return self.dim // self.heads


@dataclass(frozen=True)
class EncoderConfig:
    vocab_size: int
    dim: int
    layers: int
    heads: int
    max_length: int = 256


CHAT_MODELS = {
    "cpu": ModelConfig(vocab_size=2048, dim=256, layers=6, heads=8, kv_heads=2, hidden=704, max_length=512),
    "gpu": ModelConfig(vocab_size=32_000, dim=2048, layers=22, heads=32, kv_heads=4, hidden=5632, max_length=1024),
}

RERANKERS = {
    "cpu": EncoderConfig(vocab_size=2048, dim=128, layers=3, heads=4),
    "gpu": EncoderConfig(vocab_size=32_000, dim=384, layers=6, heads=6),
}


@dataclass(frozen=True)
class SamplingParams:
    max_tokens: int = 48
    temperature: float = 0.8
    top_k: int = 50
    top_p: float = 0.95
    repetition_penalty: float = 1.1
    logprobs: int = 0
    stop: tuple[str, ...] = ()

    @classmethod
    def from_body(cls, body: dict[str, Any], limit: int) -> SamplingParams:
        """Read the options of a request's JSON body; raises ValueError for values that make no sense."""
        params = cls(
            max_tokens=min(int(body.get("max_tokens", cls.max_tokens)), limit),
            temperature=float(body.get("temperature", cls.temperature)),
            top_k=int(body.get("top_k", cls.top_k)),
            top_p=float(body.get("top_p", cls.top_p)),
            repetition_penalty=float(body.get("repetition_penalty", cls.repetition_penalty)),
            logprobs=int(body.get("logprobs", 0)),
            stop=tuple(body.get("stop", ())),
        )
        if params.max_tokens < 1 or params.top_k < 1 or params.logprobs < 0:
            raise ValueError("max_tokens and top_k must be positive, logprobs not negative")
        if params.temperature <= 0 or not 0 < params.top_p <= 1 or params.repetition_penalty <= 0:
            raise ValueError("temperature and repetition_penalty must be positive, top_p in (0, 1]")
        return params
