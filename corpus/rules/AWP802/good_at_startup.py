"""At module level, in a lifespan, lazily behind a test, in a cached function, in a constructor."""

from contextlib import asynccontextmanager
from functools import lru_cache

from fastapi import FastAPI
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer, pipeline

models: dict = {}
classifier = None


@asynccontextmanager
async def lifespan(app: FastAPI):
    models["tokenizer"] = AutoTokenizer.from_pretrained("lm")
    yield


app = FastAPI(lifespan=lifespan)
summarizer = pipeline("summarization", model="summary", device=0)


@lru_cache(maxsize=4)
def encoder(name: str) -> SentenceTransformer:
    return SentenceTransformer(name)


class Service:
    def __init__(self):
        self.tokenizer = AutoTokenizer.from_pretrained("lm")


@app.post("/classify")
def classify(text: str) -> list:
    global classifier
    if classifier is None:
        classifier = pipeline("text-classification", model="classifier", device=0)
    return classifier(text) + summarizer(text)


@app.post("/embed")
def embed(text: str, name: str) -> list:
    return encoder(name).encode([text]).tolist()
