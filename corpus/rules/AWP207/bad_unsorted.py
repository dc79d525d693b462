"""Lists of texts cut into batches in the order they come."""

import torch
from tqdm import tqdm
from transformers import AutoModelForSequenceClassification, AutoTokenizer


class Reranker:
    def __init__(self, name: str):
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.model = AutoModelForSequenceClassification.from_pretrained(name).half().to("cuda").eval()

    @torch.no_grad()
    def compute_score(self, pairs: list[tuple[str, str]], batch_size: int = 256) -> list[float]:
        scores = []
        for start in tqdm(range(0, len(pairs), batch_size)):
            batch = pairs[start : start + batch_size]
            inputs = self.tokenizer(batch, padding=True, truncation=True, return_tensors="pt").to("cuda")  # expect: AWP207
            scores.extend(self.model(**inputs).logits.view(-1).float().cpu().tolist())
        return scores

    @torch.inference_mode()
    def predict(self, texts: list[str]) -> torch.Tensor:
        parts = []
        size = 32
        for i in range(0, len(texts), size):
            inputs = self.tokenizer(texts[i : i + size], padding="longest", return_tensors="pt")  # expect: AWP207
            parts.append(self.model(**inputs.to("cuda")).logits)
        return torch.cat(parts)
