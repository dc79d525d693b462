"""A network of a library that goes to the device for each request and back behind it."""

import torch
from fastapi import FastAPI
from torchvision.models import resnet50

app = FastAPI()


class Classifier:
    def __init__(self, device: str):
        self.device = device
        self.net = resnet50()
        self.net.eval()

    @torch.no_grad()
    def predict(self, batch: torch.Tensor) -> int:
        self.net.to(self.device)  # expect: AWP606
        best = self.net(batch.to(self.device)).argmax(-1).item()
        self.net.to("cpu")
        return best


classifier = Classifier("cuda")


@app.post("/predict")
def predict(pixels: list[float]) -> int:
    return classifier.predict(torch.tensor(pixels).view(1, 3, 224, 224))
