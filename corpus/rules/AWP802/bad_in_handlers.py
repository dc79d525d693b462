"""Models and tokenizers loaded while a request waits."""

import torch
import whisper
from fastapi import FastAPI
from flask import Flask
from sentence_transformers import SentenceTransformer
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

app = FastAPI()
web = Flask(__name__)


@app.post("/classify")
def classify(text: str) -> list:
    classifier = pipeline("text-classification", model="classifier", device=0)  # expect: AWP802
    return classifier(text)


@app.post("/complete")
async def complete(prompt: str) -> str:
    tokenizer = AutoTokenizer.from_pretrained("lm")  # expect: AWP802
    model = AutoModelForCausalLM.from_pretrained("lm").to("cuda")  # expect: AWP802
    tokens = model.generate(**tokenizer(prompt, return_tensors="pt").to("cuda"))
    return tokenizer.decode(tokens[0])


def encode_all(texts: list[str]) -> list:
    encoder = SentenceTransformer("encoder")  # expect: AWP802
    return encoder.encode(texts).tolist()


@web.route("/embed", methods=["POST"])
def embed() -> list:
    return encode_all(["a", "b"])


@web.route("/transcribe")
def transcribe() -> str:
    return whisper.load_model("base").transcribe("a.wav")["text"]  # expect: AWP802


@web.route("/score")
def score() -> str:
    weights = torch.load("weights.pt")  # expect: AWP802
    return str(weights["bias"])
