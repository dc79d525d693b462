"""The same with Flask and a pipeline behind a helper."""

from flask import Flask, request
from transformers import pipeline

app = Flask(__name__)
classifier = pipeline("text-classification", model="classifier", device=0)


def label(text: str) -> str:
    return classifier(text)[0]["label"]


@app.route("/label", methods=["POST"])
def handle() -> str:
    return label(request.json["text"])  # expect: AWP803
