"""Lists of texts that are sorted by length first, one batch, parts of one long text, and batches of arrays."""

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer


class Classifier:
    def __init__(self, name: str):
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.model = AutoModelForSequenceClassification.from_pretrained(name).half().to("cuda").eval()

    @torch.inference_mode()
    def predict(self, texts: list[str], batch_size: int = 32) -> list[int]:
        order = np.argsort([-len(text) for text in texts])
        given = [texts[i] for i in order]
        labels = []
        for start in range(0, len(given), batch_size):
            inputs = self.tokenizer(given[start : start + batch_size], padding=True, return_tensors="pt").to("cuda")
            labels.append(self.model(**inputs).logits.argmax(-1))
        found = torch.cat(labels).tolist()
        return [found[i] for i in np.argsort(order)]

    @torch.inference_mode()
    def predict_batch(self, texts: list[str]) -> torch.Tensor:
        inputs = self.tokenizer(texts, padding=True, return_tensors="pt").to("cuda")
        return self.model(**inputs).logits


class Windows:
    def __init__(self, model: torch.nn.Module):
        self.model = model.to("cuda").eval()

    @torch.inference_mode()
    def predict(self, samples: np.ndarray, size: int) -> torch.Tensor:
        parts = []
        for start in range(0, len(samples), size):
            part = torch.from_numpy(samples[start : start + size]).to("cuda")
            parts.append(self.model(part))
        return torch.cat(parts)
