"""Pipelines and sentence encoders called once an item."""

from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import pipeline


class Search:
    def __init__(self, name: str):
        self.encoder = SentenceTransformer(name)
        self.classify = pipeline("text-classification", model=name, device=0)
        self.reranker = CrossEncoder(name)

    def predict(self, texts: list, query: str) -> list:
        vectors = []
        for text in texts:  # expect: AWP208
            vectors.append(self.encoder.encode(text))
        labels = [self.classify(text)[0] for text in texts]  # expect: AWP208
        ranks = []
        for doc in texts:  # expect: AWP208
            ranks.append(self.reranker.predict([(query, doc)]))
        return [vectors, labels, ranks]
