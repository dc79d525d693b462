"""Faults and look-alikes that need a small application around them; :mod:`faults` says what the kinds mean."""

from __future__ import annotations

from faults import Faults, snippets


def _faults(rule: str, kind: str, bad: str, good: str, same: tuple[str, ...] = ()) -> Faults:
    return Faults(rule, kind, snippets(bad), snippets(good), same)


APPS = (
    _faults(
        "AWP207",
        "file",
        """
        class Classifier_{u}:
            def __init__(self, name: str):
                from transformers import AutoModelForSequenceClassification, AutoTokenizer

                self.tokenizer = AutoTokenizer.from_pretrained(name)
                self.model = AutoModelForSequenceClassification.from_pretrained(name).to("cuda").eval()

            @torch.inference_mode()
            def predict(self, texts: list[str]):
                batch = self.tokenizer(texts, padding="max_length", truncation=True, return_tensors="pt")
                return self.model(**batch.to("cuda")).logits
        """,
        """
        class Classifier_{u}:
            def __init__(self, name: str):
                from transformers import AutoModelForSequenceClassification, AutoTokenizer

                self.tokenizer = AutoTokenizer.from_pretrained(name)
                self.model = AutoModelForSequenceClassification.from_pretrained(name).to("cuda").eval()

            @torch.inference_mode()
            def predict(self, texts: list[str]):
                batch = self.tokenizer(texts, padding=True, max_length=512, truncation=True, return_tensors="pt")
                return self.model(**batch.to("cuda")).logits
        """,
    ),
    _faults(
        "AWP301",
        "layer",
        """
        decay_{u} = torch.exp(-torch.exp({x}))
        mixed_{u} = {x} * decay_{u} + 0.5 * (1.0 - decay_{u})
        gate_{u} = torch.sigmoid(mixed_{u} * 0.5 + {x})
        {x} = gate_{u} * mixed_{u} + (1.0 - gate_{u}) * {x}
        """,
        """
        {x} = {x} * 0.5 + {x}
        ---
        {x} = F.silu({x}) + {x}
        """,
    ),
    _faults(
        "AWP308",
        "module",
        """
        class Stem_{u}(nn.Module):
            def __init__(self, width: int):
                super().__init__()
                self.conv = nn.Conv2d(3, width, 3)
                self.bn = nn.BatchNorm2d(width)

            def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
                return torch.relu(self.bn(self.conv(pixel_values)))


        @torch.inference_mode()
        def predict_{u}(pixel_values: torch.Tensor) -> torch.Tensor:
            net = Stem_{u}(64).eval().cuda()
            return net(pixel_values.cuda())
        """,
        """
        class Stem_{u}(nn.Module):
            def __init__(self, width: int):
                super().__init__()
                self.conv = nn.Conv2d(3, width, 3)
                self.norm = nn.GroupNorm(8, width)

            def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
                return torch.relu(self.norm(self.conv(pixel_values)))
        """,
    ),
    _faults(
        "AWP801",
        "file",
        """
        def routes_{u}(name: str):
            from fastapi import FastAPI
            from transformers import AutoModelForCausalLM, AutoTokenizer

            app = FastAPI()
            tokenizer = AutoTokenizer.from_pretrained(name)
            model = AutoModelForCausalLM.from_pretrained(name).to("cuda").eval()

            @app.post("/complete")
            async def complete(prompt: str) -> str:
                inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
                tokens = model.generate(**inputs, max_new_tokens=64)
                return tokenizer.decode(tokens[0])

            return app
        """,
        """
        def routes_{u}(name: str):
            import asyncio

            from fastapi import FastAPI
            from transformers import AutoModelForCausalLM, AutoTokenizer

            app = FastAPI()
            tokenizer = AutoTokenizer.from_pretrained(name)
            model = AutoModelForCausalLM.from_pretrained(name).to("cuda").eval()

            def run(prompt: str) -> str:
                inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
                return tokenizer.decode(model.generate(**inputs, max_new_tokens=64)[0])

            @app.post("/complete")
            async def complete(prompt: str) -> str:
                return await asyncio.to_thread(run, prompt)

            return app
        """,
    ),
    _faults(
        "AWP802",
        "file",
        """
        def routes_{u}(name: str):
            from fastapi import FastAPI
            from transformers import pipeline

            app = FastAPI()

            @app.post("/classify")
            def classify(text: str) -> list:
                classifier = pipeline("text-classification", model=name, device=0)
                return classifier(text)

            return app
        """,
        """
        def routes_{u}(name: str):
            from fastapi import FastAPI
            from transformers import pipeline

            app = FastAPI()
            classifier = pipeline("text-classification", model=name, device=0)

            @app.post("/classify")
            def classify(text: str) -> list:
                return classifier(text)

            return app
        """,
    ),
    _faults(
        "AWP808",
        "file",
        """
        def main_{u}() -> None:
            import uvicorn

            uvicorn.run("server:app", host="0.0.0.0", reload=True)
        ---
        def main_{u}() -> None:
            import uvicorn

            uvicorn.run("server:app", host="0.0.0.0", workers=4)
        """,
        """
        def main_{u}() -> None:
            import uvicorn

            uvicorn.run("server:app", host="0.0.0.0")
        """,
    ),
)
