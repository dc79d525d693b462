"""The service folds after loading."""

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval


class Net(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.conv = nn.Conv2d(3, channels, 3)
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(self.conv(x))


net = Net(16)
net.load_state_dict(torch.load("net.pt"))
net.eval()
net.conv, net.bn = fuse_conv_bn_eval(net.conv, net.bn), nn.Identity()


@torch.inference_mode()
def predict(images: torch.Tensor) -> torch.Tensor:
    return net(images)
