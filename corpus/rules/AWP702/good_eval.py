"""Put into eval mode, right after loading or later."""

import torch
import torchvision
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(self.fc(x))


backbone = torchvision.models.resnet18(weights="DEFAULT").eval()
net = Net()
net.load_state_dict(torch.load("net.pt"))
net.to("cuda").eval()


@torch.inference_mode()
def predict(images: torch.Tensor) -> torch.Tensor:
    return net(images.cuda()) + backbone(images).mean()
