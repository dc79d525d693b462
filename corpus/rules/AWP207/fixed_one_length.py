"""Requests padded to one length."""

import torch
from fastapi import FastAPI
from transformers import AutoModelForSequenceClassification, AutoTokenizer

app = FastAPI()
tokenizer = AutoTokenizer.from_pretrained("classifier")
model = AutoModelForSequenceClassification.from_pretrained("classifier").to("cuda").eval()


@app.post("/classify")
def classify(texts: list[str]) -> list[int]:
    batch = tokenizer(texts, padding="longest", truncation=True, return_tensors="pt")
    with torch.inference_mode():
        return model(**batch.to("cuda")).logits.argmax(-1).tolist()


class Reranker:
    def __init__(self, name: str):
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.model = AutoModelForSequenceClassification.from_pretrained(name).to("cuda").eval()

    @torch.inference_mode()
    def predict(self, query: str, docs: list[str]) -> torch.Tensor:
        pairs = [[query, doc] for doc in docs]
        batch = self.tokenizer(pairs, padding="longest", truncation=True, return_tensors="pt")
        return self.model(**batch.to("cuda")).logits[:, 0]
