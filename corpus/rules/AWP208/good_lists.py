"""Lists and batch sizes; loops over batches; other objects with encode."""

from sentence_transformers import SentenceTransformer
from transformers import pipeline


class Search:
    def __init__(self, name: str):
        self.encoder = SentenceTransformer(name)
        self.classify = pipeline("text-classification", model=name, device=0)

    def predict(self, texts: list) -> list:
        vectors = self.encoder.encode(texts, batch_size=32)
        labels = self.classify(texts, batch_size=16)
        for start in range(0, len(texts), 32):
            self.encoder.encode(texts[start : start + 32])
        raw = [text.encode("utf-8") for text in texts]
        return [vectors, labels, raw]
