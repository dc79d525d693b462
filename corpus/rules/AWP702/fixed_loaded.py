"""Weights are loaded and the model infers, dropout and batch norm at work."""

import torch
import torchvision
from fastapi import FastAPI
from torch import nn

app = FastAPI()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(self.norm(self.conv(x))).mean((2, 3))


backbone = torchvision.models.resnet18(weights="DEFAULT")
backbone.eval()
net = Net()
net.load_state_dict(torch.load("net.pt", map_location="cpu"))
net.eval()
net = net.cuda()


@torch.inference_mode()
def predict(images: torch.Tensor) -> torch.Tensor:
    return net(images.cuda()) + backbone(images).mean()


class Service:
    def __init__(self, path: str):
        self.model = Net()
        self.model.load_state_dict(torch.load(path))
        self.model.eval()
        self.model.to("cuda")

    @torch.no_grad()
    def __call__(self, images: torch.Tensor) -> list:
        return self.model(images.to("cuda")).tolist()
