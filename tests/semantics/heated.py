"""A small library, and how often its functions run."""

from __future__ import annotations

from typing import Any

from awp_lint.detector.semantics.facts import FileFacts

LIBRARY = {
    "lib/__init__.py": "",
    "lib/layers.py": """
        import torch
        from torch import nn

        class Attention(nn.Module):
            def forward(self, x):
                return helper(x)

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.attn = Attention()
                self.tables = build_tables(8)
            def forward(self, x):
                if self.training:
                    regularise(x)
                return self.attn(x)

        def helper(x): return x
        def regularise(x): return x
        def build_tables(n):
            for layer in range(n):
                fill(layer)
        def fill(layer): ...
        """,
    "lib/model.py": """
        from torch import nn
        from .layers import Block

        class Model(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.layers = nn.ModuleList([Block() for _ in range(n)])
            def forward(self, ids):
                for layer in self.layers:
                    ids = layer(ids)
                return ids
        """,
    "lib/generate.py": """
        from .model import Model

        def generate(model: Model, ids, max_new_tokens):
            for _ in range(max_new_tokens):
                ids = pick(model(ids))
            return ids

        def pick(logits): return logits
        """,
    "app.py": """
        from fastapi import FastAPI
        from lib.generate import generate
        from lib.model import Model

        app = FastAPI()
        model = Model(4)

        @app.post("/")
        async def answer(request):
            return generate(model, request.ids, 16)

        @app.on_event("startup")
        def warm():
            for prompt in ["a"]:
                generate(model, prompt, 1)
        """,
}


def facts_of(project: Any, path: str) -> FileFacts:
    return next(file.facts for file in project.index.files if file.path == path)


def none(path: str) -> FileFacts:
    raise AssertionError(f"no position in {path} matters here")


def frequency(project: Any, dotted: str) -> str:
    found = project.frequencies.frequency(project.index.by_function[dotted])
    return f"{found} {found.certainty.name.lower()}"


def chain(project: Any, dotted: str) -> list[tuple[str, int, str]]:
    found = project.frequencies.frequency(project.index.by_function[dotted])
    return [(f.path, f.line, f.function) for f in found.chain]
