"""A program that trains; models that come in eval mode are in the other file."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(self.fc(x))


def resume(path: str, loader, optimizer) -> nn.Module:
    net = Net().cuda()
    net.load_state_dict(torch.load(path))
    for batch in loader:
        loss = net(batch.cuda()).mean()
        loss.backward()
        optimizer.step()
    return net
