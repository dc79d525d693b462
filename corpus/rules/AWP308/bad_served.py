"""A service's own network: convolutions and batch norms apart, in both spellings."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.conv1(x)
        out = self.bn1(out)  # expect: AWP308
        out = torch.relu(out)
        return x + self.bn2(self.conv2(out))  # expect: AWP308


net = nn.Sequential(*[Block(64) for _ in range(4)])
net.load_state_dict(torch.load("net.pt"))
net.eval().cuda()


@torch.inference_mode()
def predict(images: torch.Tensor) -> torch.Tensor:
    return net(images.cuda())
