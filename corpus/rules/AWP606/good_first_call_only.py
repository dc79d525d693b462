"""Casts and moves of models that only the first call has anything to do for."""

import torch
from fastapi import FastAPI
from transformers import AutoModel

app = FastAPI()
encoder = AutoModel.from_pretrained("encoder")
quantizer = AutoModel.from_pretrained("quantizer")


@app.post("/embed")
def embed(ids: list[int]) -> list:
    if any(parameter.device.type != "cuda" for parameter in encoder.parameters()):
        encoder.to("cuda")  # expect[low]: AWP606
    quantizer.float()  # expect[low]: AWP606
    hidden = encoder(torch.tensor([ids], device="cuda")).last_hidden_state
    return quantizer(hidden.float()).last_hidden_state.tolist()


class Classifier(torch.nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.head = torch.nn.Linear(dim, 2)

    @torch.inference_mode()
    def predict(self, features: torch.Tensor) -> torch.Tensor:
        self.to("cuda")  # expect[low]: AWP606
        return self.head(features.to("cuda"))


classifier = Classifier(64)


@app.post("/classify")
def classify(features: list[float]) -> list:
    return classifier.predict(torch.tensor([features])).tolist()
