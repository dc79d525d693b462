"""Models and tokenizers loaded while a request waits."""

import torch
import whisper
from fastapi import FastAPI
from flask import Flask
from sentence_transformers import SentenceTransformer
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

app = FastAPI()
web = Flask(__name__)


@functools.cache
def _load_classifier():
    return pipeline("text-classification", model="classifier", device=0)


@app.post("/classify")
def classify(text: str) -> list:
    classifier = _load_classifier()
    return classifier(text)


@functools.cache
def _load_model():
    return AutoModelForCausalLM.from_pretrained("lm").to("cuda")


@functools.cache
def _load_tokenizer():
    return AutoTokenizer.from_pretrained("lm")


@app.post("/complete")
async def complete(prompt: str) -> str:
    tokenizer = _load_tokenizer()
    model = _load_model()
    tokens = model.generate(**tokenizer(prompt, return_tensors="pt").to("cuda"))
    return tokenizer.decode(tokens[0])


@functools.cache
def _load_encoder():
    return SentenceTransformer("encoder")


def encode_all(texts: list[str]) -> list:
    encoder = _load_encoder()
    return encoder.encode(texts).tolist()


@web.route("/embed", methods=["POST"])
def embed() -> list:
    return encode_all(["a", "b"])


@functools.cache
def _load_model_2():
    return whisper.load_model("base")


@web.route("/transcribe")
def transcribe() -> str:
    return _load_model_2().transcribe("a.wav")["text"]


@functools.cache
def _load_weights():
    return torch.load("weights.pt")


@web.route("/score")
def score() -> str:
    weights = _load_weights()
    return str(weights["bias"])
